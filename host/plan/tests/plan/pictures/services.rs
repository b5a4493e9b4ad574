//! The fate of each container.

use expect_test::expect;
use model::ContainerState::{Created, Dead, Exited, Paused, Removing, Restarting, Running};
use plan::plan;

use super::{check_plan, service, shop};
use crate::build::{device, target};

#[test]
fn services_start_under_the_locks_of_their_app() {
    check_plan(
        device().image("web:1").image("db:1"),
        target()
            .service(service("web", "web:1"))
            .service(service("db", "db:1")),
        expect![[r#"
            under locks of shop (db, web)
              start shop/db on docker
              start shop/web on docker
        "#]],
    );
}

#[test]
fn a_changed_service_is_killed_and_started_and_the_other_untouched() {
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .running(service("web", "web:1"))
            .running(service("db", "db:1")),
        target()
            .service(service("web", "web:1").with("hostname: shop"))
            .service(service("db", "db:1")),
        expect![[r#"
            under locks of shop (db, web)
              kill shop/web (id1)
              start shop/web on docker
        "#]],
    );
}

#[test]
fn a_reference_that_names_another_image_now_is_a_change() {
    check_plan(
        device()
            .moved_image("web:1")
            .running(service("web", "web:1")),
        target().service(service("web", "web:1")),
        expect![[r#"
            under locks of shop (web)
              kill shop/web (id1)
              start shop/web on docker
        "#]],
    );
}

#[test]
fn a_release_that_changes_nothing_else_renames() {
    check_plan(
        device()
            .image("web:1")
            .running(service("web", "web:1"))
            .commit("shop", "c1"),
        target().service(service("web", "web:1").release(2)),
        expect![[r#"
            under locks of shop (web)
              rename shop/web to web_2_2_c2
        "#]],
    );
}

#[test]
fn the_newest_of_two_containers_is_kept() {
    check_plan(
        device()
            .image("web:1")
            .running(service("web", "web:1"))
            .running(service("web", "web:1").release(2)),
        target().service(service("web", "web:1").release(2)),
        expect![[r#"
            under locks of shop (web)
              kill shop/web (id1)
        "#]],
    );
}

#[test]
fn services_that_the_target_does_not_have_are_killed() {
    check_plan(
        device()
            .image("web:1")
            .running(service("web", "web:1"))
            .running(service("old", "old:1")),
        target().service(service("web", "web:1")),
        expect![[r#"
            under locks of shop (old, web)
              kill shop/old (id2)
        "#]],
    );
}

#[test]
fn a_container_that_ended_is_left_to_its_restart_policy() {
    for state in [Exited, Restarting, Paused] {
        let device = device()
            .image("web:1")
            .container(service("web", "web:1"), state)
            .commit("shop", "c1");
        let target = target().service(service("web", "web:1"));
        assert!(plan(&device.0, &target.0).is_settled(), "{state:?}");
    }
}

#[test]
fn a_container_that_we_stopped_is_started_again_when_the_target_wants_it() {
    check_plan(
        device()
            .image("web:1")
            .container(service("web", "web:1"), Exited)
            .stopped("id1"),
        target().service(service("web", "web:1")),
        expect![[r#"
            start existing shop/web (id1)
        "#]],
    );
}

#[test]
fn a_service_that_vanished_comes_back() {
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .running(service("db", "db:1"))
            .commit("shop", "c1"),
        target()
            .service(service("web", "web:1"))
            .service(service("db", "db:1")),
        expect![[r#"
            under locks of shop (db, web)
              start shop/web on docker
        "#]],
    );
}

#[test]
fn a_created_container_is_started_without_locks() {
    check_plan(
        device()
            .image("web:1")
            .container(service("web", "web:1"), Created),
        target().service(service("web", "web:1")),
        expect![[r#"
            start existing shop/web (id1)
        "#]],
    );
}

#[test]
fn a_service_that_should_not_run_is_stopped_and_kept() {
    check_plan(
        device().image("web:1").running(service("web", "web:1")),
        target().service(service("web", "web:1").stopped()),
        expect![[r#"
            under locks of shop (web)
              stop shop/web (id1)
        "#]],
    );
    check_plan(
        device()
            .image("web:1")
            .container(service("web", "web:1"), Exited)
            .commit("shop", "c1"),
        target().service(service("web", "web:1").stopped()),
        expect![[r#"
            nothing
        "#]],
    );
}

#[test]
fn a_service_that_should_not_run_is_created_and_not_started() {
    check_plan(
        device().image("web:1"),
        target().service(service("web", "web:1").stopped()),
        expect![[r#"
            under locks of shop (web)
              create shop/web on docker
        "#]],
    );
}

/// docs/spec/device.md#retry
#[test]
fn a_container_that_its_engine_keeps_refusing_to_start_counts_as_dead_unless_it_runs() {
    let stuck = |state| {
        device()
            .image("web:1")
            .container(service("web", "web:1"), state)
            .stuck(&shop("web"), "id1")
    };
    let web = || target().service(service("web", "web:1"));
    for state in [Created, Exited] {
        check_plan(
            stuck(state),
            web(),
            expect![[r#"
                remove dead shop/web (id1)
                ... shop/web is tried again later: it already exists
            "#]],
        );
    }
    let runs = stuck(Running);
    check_plan(
        runs,
        web(),
        expect![[r#"
            record commit c1 of shop
        "#]],
    );
    let another = device()
        .image("web:1")
        .container(service("web", "web:1"), Created)
        .stuck(&shop("web"), "id0");
    check_plan(
        another,
        web(),
        expect![[r#"
            ... shop/web is tried again later: it already exists
        "#]],
    );
}

#[test]
fn dead_containers_are_removed_without_locks_before_their_service_starts() {
    check_plan(
        device()
            .image("web:1")
            .container(service("web", "web:1"), Dead)
            .container(service("old", "old:1"), Dead),
        target().service(service("web", "web:1")),
        expect![[r#"
            remove dead shop/web (id1)
            remove dead shop/old (id2)
            ... shop/web waits for an old container to be removed
        "#]],
    );
}

#[test]
fn a_service_waits_for_its_old_container_to_be_gone() {
    check_plan(
        device()
            .image("web:1")
            .container(service("web", "web:1"), Removing),
        target().service(service("web", "web:1")),
        expect![[r#"
            ... shop/web waits for an old container to be removed
        "#]],
    );
}
