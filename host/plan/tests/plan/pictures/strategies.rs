//! The update strategies (docs/spec/device.md#update-strategies).

use expect_test::expect;
use model::UpdateStrategy::{DeleteThenDownload, HandOver, KillThenDownload};
use plan::ComponentKind::Network;
use plan::Subject;

use super::{check_plan, service};
use crate::build::{Docker, device, image_ref, target};

#[test]
fn kill_then_download_kills_before_anything_of_the_app_is_pulled() {
    let desired = || {
        target()
            .service(service("web", "web:2").strategy(KillThenDownload))
            .service(service("db", "db:2"))
    };
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .running(service("web", "web:1"))
            .running(service("db", "db:1")),
        desired(),
        expect![[r#"
            under locks of shop (db, web)
              kill shop/web (id1)
            ... shop/db waits for the image `db:2`
            ... shop/web waits for the image `web:2`
        "#]],
    );
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .running(service("db", "db:1"))
            .locked("shop"),
        desired(),
        expect![[r#"
            pull db:2 on docker
            pull web:2 on docker
            release locks of shop
            ... shop/db waits for the image `db:2`
        "#]],
    );
}

#[test]
fn an_image_that_is_there_is_no_reason_to_kill_early() {
    check_plan(
        device()
            .image("web:1")
            .image("web:2")
            .image("db:1")
            .running(service("web", "web:1"))
            .running(service("db", "db:1")),
        target()
            .service(service("web", "web:2").strategy(KillThenDownload))
            .service(service("db", "db:2")),
        expect![[r#"
            pull db:2 on docker
            ... shop/db waits for the image `db:2`
        "#]],
    );
}

#[test]
fn delete_then_download_removes_the_old_image_with_the_container() {
    let desired = || target().service(service("web", "web:2").strategy(DeleteThenDownload));
    check_plan(
        device()
            .image("web:1")
            .recorded("web:1")
            .running(service("web", "web:1"))
            .local_mode(),
        desired(),
        expect![[r#"
            under locks of shop (web)
              kill shop/web (id1)
              remove image web:1 on docker
            ... shop/web waits for the image `web:2`
        "#]],
    );
    // An image that somebody else pulled, and one that another service needs, stay.
    check_plan(
        device().image("web:1").running(service("web", "web:1")),
        desired(),
        expect![[r#"
            under locks of shop (web)
              kill shop/web (id1)
            ... shop/web waits for the image `web:2`
        "#]],
    );
    check_plan(
        device()
            .image("web:1")
            .recorded("web:1")
            .running(service("web", "web:1"))
            .running(service("twin", "web:1")),
        desired().service(service("twin", "web:1")),
        expect![[r#"
            under locks of shop (twin, web)
              kill shop/web (id1)
            ... shop/web waits for the image `web:2`
        "#]],
    );
}

#[test]
fn hand_over_starts_the_new_one_beside_the_old_one_when_its_image_is_there() {
    let desired = || target().service(service("web", "web:2").strategy(HandOver));
    check_plan(
        device().image("web:1").running(service("web", "web:1")),
        desired(),
        expect![[r#"
            pull web:2 on docker
            ... shop/web waits for the image `web:2`
        "#]],
    );
    check_plan(
        device()
            .image("web:1")
            .image("web:2")
            .running(service("web", "web:1")),
        desired(),
        expect![[r#"
            under locks of shop (web)
              hand shop/web (id1) over on docker
        "#]],
    );
}

#[test]
fn a_hand_over_waits_for_what_the_new_one_depends_on() {
    check_plan(
        device()
            .image("web:1")
            .image("web:2")
            .image("db:1")
            .running(service("web", "web:1")),
        target()
            .service(service("web", "web:2").strategy(HandOver).after(&["db"]))
            .service(service("db", "db:1")),
        expect![[r#"
            under locks of shop (db, web)
              start shop/db on docker
            ... shop/web waits for `db` to be started
        "#]],
    );
}

#[test]
fn a_service_whose_network_changes_is_killed_rather_than_handed_over() {
    check_plan(
        device()
            .image("web:1")
            .image("web:2")
            .network("shop", "front", "old")
            .running(service("web", "web:1").network("front")),
        target()
            .network("shop", "front", "new")
            .service(service("web", "web:2").strategy(HandOver).network("front")),
        expect![[r#"
            under locks of shop (web)
              kill shop/web (id1)
            ... shop/web waits for `shop_front`
        "#]],
    );
}

#[test]
fn the_removal_of_an_image_that_failed_is_not_a_reason_to_stop_pulling() {
    check_plan(
        device()
            .image("web:1")
            .failed(Subject::Image(image_ref("web:1")), "in use")
            .failed(Subject::Component(Network, Docker, "other".into()), "busy"),
        target().service(service("web", "web:2").strategy(DeleteThenDownload)),
        expect![[r#"
            pull web:2 on docker
            ... shop/web waits for the image `web:2`
        "#]],
    );
}
