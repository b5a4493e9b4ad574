//! Update locks.

use expect_test::expect;

use super::{check_plan, locks, service, shop};
use crate::build::{device, service as any_service, target};

#[test]
fn the_locks_of_all_current_and_target_services_are_taken() {
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .running(service("old", "old:1"))
            .running(service("db", "db:1")),
        target()
            .service(service("web", "web:1"))
            .service(service("db", "db:1")),
        expect![[r#"
            under locks of shop (db, old, web)
              start shop/web on docker
              kill shop/old (id1)
        "#]],
    );
}

#[test]
fn locks_that_a_user_holds_are_waited_for() {
    check_plan(
        device()
            .image("web:2")
            .running(service("web", "web:1"))
            .failed(locks(), "Lockfile exists for { appId: 1, service: web }"),
        target().service(service("web", "web:2")),
        expect![[r#"
            ... the update of app shop is locked: Lockfile exists for { appId: 1, service: web }
        "#]],
    );
}

#[test]
fn locks_of_one_app_do_not_block_another() {
    check_plan(
        device()
            .image("web:2")
            .image("till:2")
            .running(service("web", "web:1"))
            .running(any_service("cafe", "till", "till:1"))
            .failed(locks(), "locked"),
        target()
            .service(service("web", "web:2"))
            .service(any_service("cafe", "till", "till:2")),
        expect![[r#"
            under locks of cafe (till)
              kill cafe/till (id2)
              start cafe/till on docker
            ... the update of app shop is locked: locked
        "#]],
    );
}

#[test]
fn locks_are_kept_while_a_step_is_in_flight_and_released_when_the_app_has_settled() {
    let desired = || target().service(service("web", "web:1"));
    check_plan(
        device().image("web:1").locked("shop").busy(shop("web")),
        desired(),
        expect![[r#"
            nothing
        "#]],
    );
    check_plan(
        device()
            .image("web:1")
            .running(service("web", "web:1"))
            .locked("shop"),
        desired(),
        expect![[r#"
            record commit c1 of shop
            release locks of shop
        "#]],
    );
}

#[test]
fn locks_are_not_kept_from_the_user_while_a_failure_waits() {
    check_plan(
        device()
            .image("web:1")
            .locked("shop")
            .failed(shop("web"), "exec format error"),
        target().service(service("web", "web:1")),
        expect![[r#"
            release locks of shop
            ... shop/web is tried again later: exec format error
        "#]],
    );
}
