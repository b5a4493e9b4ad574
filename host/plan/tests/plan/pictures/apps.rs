//! Whole apps, and the record of what runs.

use expect_test::expect;

use super::{check_plan, service};
use crate::build::{device, target};

#[test]
fn the_commit_is_recorded_when_nothing_else_is_left() {
    check_plan(
        device().image("web:1").running(service("web", "web:1")),
        target().service(service("web", "web:1")),
        expect![[r#"
            record commit c1 of shop
        "#]],
    );
    check_plan(
        device()
            .image("web:1")
            .running(service("web", "web:1"))
            .commit("shop", "c1"),
        target().service(service("web", "web:1")),
        expect![[r#"
            nothing
        "#]],
    );
}

#[test]
fn an_app_that_is_gone_is_removed_with_its_volumes() {
    check_plan(
        device()
            .running(service("web", "web:1"))
            .running(service("db", "db:1"))
            .network("shop", "default", "")
            .volume("shop", "data", "")
            .commit("shop", "c1"),
        target(),
        expect![[r#"
            under locks of shop (db, web)
              kill shop/db (id2)
              kill shop/web (id1)
        "#]],
    );
    check_plan(
        device()
            .network("shop", "default", "")
            .volume("shop", "data", "")
            .commit("shop", "c1")
            .locked("shop"),
        target(),
        expect![[r#"
            remove network shop_default on docker
            remove volume 1_data on docker
        "#]],
    );
    check_plan(
        device().commit("shop", "c1"),
        target(),
        expect![[r#"
        forget commit of shop
    "#]],
    );
}

#[test]
fn volumes_of_an_app_that_is_gone_stay_in_local_mode() {
    check_plan(
        device()
            .local_mode()
            .network("shop", "default", "")
            .volume("shop", "data", ""),
        target(),
        expect![[r#"
            remove network shop_default on docker
        "#]],
    );
}

#[test]
fn apps_that_are_not_ours_are_never_touched() {
    check_plan(
        device().running(service("hostapp", "os:1")),
        target()
            .service(service("hostapp", "os:2"))
            .not_ours("shop"),
        expect![[r#"
            nothing
        "#]],
    );
}

#[test]
fn an_app_whose_release_was_rejected_is_left_as_it_is() {
    check_plan(
        device().running(service("web", "web:1")).locked("shop"),
        target().rejected("shop"),
        expect![[r#"
            release locks of shop
        "#]],
    );
}

#[test]
fn of_an_app_that_comes_back_as_it_was_nothing_is_recorded_and_no_image_removed() {
    let device = || {
        device()
            .image("web:1")
            .image("web:2")
            .recorded("web:1")
            .recorded("web:2")
            .running(service("web", "web:1"))
    };
    // As if this were the target.
    let as_it_was = || target().service(service("web", "web:1"));
    check_plan(
        device().restored("shop"),
        as_it_was(),
        expect![[r#"
            nothing
        "#]],
    );
    check_plan(
        device(),
        as_it_was(),
        expect![[r#"
            record commit c1 of shop
        "#]],
    );
    check_plan(
        device().commit("shop", "c1"),
        as_it_was(),
        expect![[r#"
            remove image web:2 on docker
        "#]],
    );
}
