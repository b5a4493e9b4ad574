//! Which service waits for which.

use expect_test::expect;
use model::ContainerState::{Created, Exited};

use super::{check_plan, service, shop};
use crate::build::{device, target};

#[test]
fn a_service_starts_after_those_that_it_depends_on() {
    check_plan(
        device().image("web:1").image("db:1").image("cache:1"),
        target()
            .service(service("web", "web:1").after(&["db", "cache"]))
            .service(service("db", "db:1"))
            .service(service("cache", "cache:1")),
        expect![[r#"
            under locks of shop (cache, db, web)
              start shop/cache on docker
              start shop/db on docker
            ... shop/web waits for `db` to be started
        "#]],
    );
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .image("cache:1")
            .running(service("db", "db:1"))
            .container(service("cache", "cache:1"), Created)
            .locked("shop"),
        target()
            .service(service("web", "web:1").after(&["db", "cache"]))
            .service(service("db", "db:1"))
            .service(service("cache", "cache:1")),
        expect![[r#"
            start existing shop/cache (id2)
            ... shop/web waits for `cache` to be started
        "#]],
    );
}

#[test]
fn a_dependency_that_ended_was_started() {
    check_plan(
        device()
            .image("web:1")
            .image("setup:1")
            .container(service("setup", "setup:1"), Exited),
        target()
            .service(service("web", "web:1").after(&["setup"]))
            .service(service("setup", "setup:1")),
        expect![[r#"
            under locks of shop (setup, web)
              start shop/web on docker
        "#]],
    );
}

#[test]
fn all_changed_services_are_killed_at_once_and_started_in_order() {
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .running(service("web", "web:1"))
            .running(service("db", "db:1")),
        target()
            .service(service("web", "web:1").with("new").after(&["db"]))
            .service(service("db", "db:1").with("new")),
        expect![[r#"
            under locks of shop (db, web)
              kill shop/db (id2)
              start shop/db on docker
              kill shop/web (id1)
            ... shop/web waits for `db` to be started
        "#]],
    );
}

#[test]
fn a_service_stops_before_those_that_it_depends_on() {
    let web = || service("web", "web:1").after(&["db"]);
    let db = || service("db", "db:1").after(&["disk"]);
    let disk = || service("disk", "disk:1");
    check_plan(
        device().running(web()).running(db()).running(disk()),
        target(),
        expect![[r#"
            under locks of shop (db, disk, web)
              kill shop/web (id1)
        "#]],
    );
    check_plan(
        device()
            .container(web(), Exited)
            .running(db())
            .running(disk())
            .locked("shop"),
        target(),
        expect![[r#"
            under locks of shop (db, disk, web)
              kill shop/db (id2)
              kill shop/web (id1)
        "#]],
    );
    // While it is being stopped, the other services continue.
    check_plan(
        device()
            .running(web())
            .running(db())
            .busy(shop("web"))
            .locked("shop"),
        target(),
        expect![[r#"
            nothing
        "#]],
    );
    // A container that stays is no reason to wait.
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .running(web())
            .running(service("db", "db:1")),
        target()
            .service(web())
            .service(service("db", "db:1").with("new")),
        expect![[r#"
            under locks of shop (db, web)
              kill shop/db (id2)
              start shop/db on docker
        "#]],
    );
}

#[test]
fn containers_of_two_releases_that_depend_on_each_other_stop_together() {
    check_plan(
        device()
            .running(service("web", "web:1").after(&["db"]))
            .running(service("db", "db:1").after(&["web"])),
        target(),
        expect![[r#"
            under locks of shop (db, web)
              kill shop/db (id2)
              kill shop/web (id1)
        "#]],
    );
}

#[test]
fn a_service_in_the_network_of_another_starts_after_it() {
    check_plan(
        device().image("web:1").image("vpn:1"),
        target()
            .service(service("vpn", "vpn:1"))
            .service(service("web", "web:1").in_network_of("vpn")),
        expect![[r#"
            under locks of shop (vpn, web)
              start shop/vpn on docker
            ... shop/web waits for `vpn` to be started
        "#]],
    );
    check_plan(
        device()
            .image("web:1")
            .image("vpn:1")
            .running(service("vpn", "vpn:1")),
        target()
            .service(service("vpn", "vpn:1"))
            .service(service("web", "web:1").in_network_of("vpn")),
        expect![[r#"
            under locks of shop (vpn, web)
              start shop/web on docker in the network of id1
        "#]],
    );
}

#[test]
fn a_service_in_the_network_of_another_is_replaced_together_with_it() {
    let device = || device().image("web:1").image("vpn:1");
    let web = || service("web", "web:1").in_network_of("vpn");
    check_plan(
        device()
            .running(service("vpn", "vpn:1"))
            .running(web())
            .joined_to("id1"),
        target()
            .service(service("vpn", "vpn:1").with("new"))
            .service(web()),
        expect![[r#"
            under locks of shop (vpn, web)
              kill shop/vpn (id1)
              start shop/vpn on docker
              kill shop/web (id2)
            ... shop/web waits for `vpn` to be started
        "#]],
    );
    // The other one disappeared and came back.
    check_plan(
        device()
            .running(service("vpn", "vpn:1"))
            .running(web())
            .joined_to("id0"),
        target().service(service("vpn", "vpn:1")).service(web()),
        expect![[r#"
            under locks of shop (vpn, web)
              kill shop/web (id2)
              start shop/web on docker in the network of id1
        "#]],
    );
    check_plan(
        device()
            .running(service("vpn", "vpn:1"))
            .running(web())
            .joined_to("id1")
            .commit("shop", "c1"),
        target().service(service("vpn", "vpn:1")).service(web()),
        expect![[r#"
            nothing
        "#]],
    );
}
