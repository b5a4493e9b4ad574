//! Images: pulled first, and removed last.

use expect_test::expect;

use super::{check_plan, image, service};
use crate::build::{device, service as any_service, target};

#[test]
fn images_and_networks_come_first_and_side_by_side() {
    check_plan(
        device(),
        target()
            .network("shop", "default", "")
            .volume("shop", "data", "")
            .service(service("web", "web:1").network("default"))
            .service(service("db", "db:1").volume("data")),
        expect![[r#"
            pull db:1 on docker
            pull web:1 on docker
            create volume 1_data on docker
            create network shop_default on docker
            ... shop/db waits for the image `db:1`
            ... shop/web waits for the image `web:1`
        "#]],
    );
}

#[test]
fn an_image_of_two_services_is_pulled_once() {
    check_plan(
        device(),
        target()
            .service(service("web", "web:1"))
            .service(service("worker", "web:1")),
        expect![[r#"
            pull web:1 on docker
            ... shop/web waits for the image `web:1`
            ... shop/worker waits for the image `web:1`
        "#]],
    );
}

#[test]
fn an_image_that_is_there_is_not_pulled() {
    check_plan(
        device().image("web:1"),
        target().service(service("web", "docker.io/library/web:1")),
        expect![[r#"
            under locks of shop (web)
              start shop/web on docker
        "#]],
    );
}

#[test]
fn new_image_is_pulled_before_the_old_service_is_killed() {
    check_plan(
        device().image("web:1").running(service("web", "web:1")),
        target().service(service("web", "web:2")),
        expect![[r#"
            pull web:2 on docker
            ... shop/web waits for the image `web:2`
        "#]],
    );
}

#[test]
fn nothing_is_killed_before_all_images_of_the_app_are_there() {
    check_plan(
        device()
            .image("web:2")
            .running(service("web", "web:1"))
            .running(service("db", "db:1"))
            .running(service("gone", "gone:1"))
            .busy(image("db:2")),
        target()
            .service(service("web", "web:2"))
            .service(service("db", "db:2")),
        expect![[r#"
            ... shop/db waits for the image `db:2`
        "#]],
    );
}

#[test]
fn nothing_is_started_before_all_images_of_the_app_are_there() {
    check_plan(
        device().image("web:1").busy(image("db:1")),
        target()
            .service(service("web", "web:1"))
            .service(service("db", "db:1")),
        expect![[r#"
            ... shop/db waits for the image `db:1`
        "#]],
    );
}

#[test]
fn images_of_one_app_hold_up_no_other() {
    check_plan(
        device().image("web:1").busy(image("till:1")),
        target()
            .service(service("web", "web:1"))
            .service(any_service("cafe", "till", "till:1")),
        expect![[r#"
            under locks of shop (web)
              start shop/web on docker
            ... cafe/till waits for the image `till:1`
        "#]],
    );
}

#[test]
fn a_failed_image_holds_up_only_its_service_and_dependents_on_a_first_install() {
    check_plan(
        device()
            .image("web:1")
            .image("api:1")
            .failed(image("db:1"), "no such image"),
        target()
            .service(service("web", "web:1"))
            .service(service("api", "api:1").after(&["db"]))
            .service(service("db", "db:1")),
        expect![[r#"
            under locks of shop (api, db, web)
              start shop/web on docker
            ... image db:1 is tried again later: no such image
            ... shop/db waits for the image `db:1`
            ... shop/api waits for `db` to be started
        "#]],
    );
}

#[test]
fn a_failed_image_does_not_let_others_go_before_the_rest_has_been_tried() {
    check_plan(
        device()
            .image("web:1")
            .busy(image("api:1"))
            .failed(image("db:1"), "no such image"),
        target()
            .service(service("web", "web:1"))
            .service(service("api", "api:1"))
            .service(service("db", "db:1")),
        expect![[r#"
            ... image db:1 is tried again later: no such image
            ... shop/api waits for the image `api:1`
            ... shop/db waits for the image `db:1`
        "#]],
    );
}

#[test]
fn a_failed_image_holds_up_an_update() {
    check_plan(
        device()
            .image("web:2")
            .running(service("web", "web:1"))
            .failed(image("db:1"), "no such image"),
        target()
            .service(service("web", "web:2"))
            .service(service("db", "db:1")),
        expect![[r#"
            ... image db:1 is tried again later: no such image
            ... shop/db waits for the image `db:1`
        "#]],
    );
}

#[test]
fn the_image_of_a_container_that_stays_is_not_pulled_again() {
    check_plan(
        device()
            .running(service("web", "web:1"))
            .commit("shop", "c1"),
        target().service(service("web", "web:1")),
        expect![[r#"
            nothing
        "#]],
    );
}

#[test]
fn images_that_we_pulled_and_nothing_uses_are_removed() {
    check_plan(
        device()
            .image("web:1")
            .image("web:2")
            .image("users-own:1")
            .recorded("web:1")
            .recorded("web:2")
            .recorded("long-gone:1")
            .running(service("web", "web:2"))
            .commit("shop", "c1"),
        target().service(service("web", "web:2")),
        expect![[r#"
            forget image long-gone:1
            remove image web:1 on docker
        "#]],
    );
}

#[test]
fn images_stay_while_there_is_anything_else_to_do() {
    check_plan(
        device().image("web:1").image("web:2").recorded("web:1"),
        target().service(service("web", "web:2")),
        expect![[r#"
            under locks of shop (web)
              start shop/web on docker
        "#]],
    );
}

#[test]
fn images_stay_in_local_mode() {
    check_plan(
        device().local_mode().image("web:1").recorded("web:1"),
        target(),
        expect![[r#"
            nothing
        "#]],
    );
}

#[test]
fn an_image_that_is_being_removed_is_pulled_again_before_it_is_used() {
    check_plan(
        device().image("web:1").busy(image("web:1")),
        target().service(service("web", "web:1")),
        expect![[r#"
            ... shop/web waits for the image `web:1`
        "#]],
    );
}
