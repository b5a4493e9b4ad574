//! Volumes and networks.

use expect_test::expect;
use model::ContainerState::Exited;
use plan::ComponentKind::{Network, Volume};
use plan::Subject;

use super::{check_plan, service};
use crate::build::{Docker, Wasm, device, service as any_service, target};

#[test]
fn a_service_starts_after_its_volumes_and_networks_are_made() {
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .network("shop", "default", "")
            .busy(Subject::Component(Volume, Docker, "1_data".into())),
        target()
            .network("shop", "default", "")
            .volume("shop", "data", "")
            .service(service("web", "web:1").network("default"))
            .service(service("db", "db:1").volume("data")),
        expect![[r#"
            under locks of shop (db, web)
              start shop/web on docker
            ... shop/db waits for `1_data`
        "#]],
    );
}

#[test]
fn a_network_that_cannot_be_made_costs_no_running_service() {
    check_plan(
        device()
            .image("web:1")
            .running(service("web", "web:1"))
            .failed(
                Subject::Component(Network, Docker, "shop_front".into()),
                "address pool overlaps",
            ),
        target()
            .network("shop", "front", "")
            .service(service("web", "web:1").network("front")),
        expect![[r#"
            ... network shop_front on docker is tried again later: address pool overlaps
            ... shop/web waits for `shop_front`
        "#]],
    );
}

#[test]
fn users_of_a_changed_network_are_killed_before_it_is_replaced() {
    let web = || service("web", "web:1").network("front");
    let desired = || {
        target()
            .network("shop", "front", "new")
            .service(web())
            .service(service("db", "db:1"))
    };
    let device = || {
        device()
            .image("web:1")
            .image("db:1")
            .running(service("db", "db:1"))
    };
    check_plan(
        device().network("shop", "front", "").running(web()),
        desired(),
        expect![[r#"
            under locks of shop (db, web)
              kill shop/web (id2)
            ... shop/web waits for `shop_front`
        "#]],
    );
    check_plan(
        device().network("shop", "front", "").locked("shop"),
        desired(),
        expect![[r#"
            remove network shop_front on docker
            ... shop/web waits for `shop_front`
        "#]],
    );
    check_plan(
        device().locked("shop"),
        desired(),
        expect![[r#"
        create network shop_front on docker
        ... shop/web waits for `shop_front`
    "#]],
    );
    check_plan(
        device().network("shop", "front", "new").locked("shop"),
        desired(),
        expect![[r#"
            under locks of shop (db, web)
              start shop/web on docker
        "#]],
    );
}

#[test]
fn users_of_a_changed_volume_are_killed_before_it_is_replaced() {
    let db = || service("db", "db:1").volume("data");
    check_plan(
        device()
            .image("db:1")
            .volume("shop", "data", "")
            .running(db()),
        target().volume("shop", "data", "driver: nfs").service(db()),
        expect![[r#"
            under locks of shop (db)
              kill shop/db (id1)
            ... shop/db waits for `1_data`
        "#]],
    );
}

#[test]
fn networks_that_the_release_does_not_have_go_and_volumes_stay() {
    check_plan(
        device()
            .image("web:1")
            .network("shop", "old", "")
            .volume("shop", "old", "")
            .running(service("web", "web:1")),
        target().service(service("web", "web:1")),
        expect![[r#"
            remove network shop_old on docker
        "#]],
    );
    check_plan(
        device()
            .image("web:1")
            .network("shop", "old", "")
            .running(service("web", "web:1").network("old")),
        target().service(service("web", "web:1")),
        expect![[r#"
            under locks of shop (web)
              kill shop/web (id1)
              start shop/web on docker
        "#]],
    );
}

#[test]
fn volumes_and_networks_are_made_on_each_engine_that_runs_services() {
    check_plan(
        device()
            .with_wasm()
            .image("web:1")
            .image_on(Wasm, "sensor:1"),
        target()
            .network("shop", "default", "")
            .volume("shop", "data", "")
            .service(service("web", "web:1").network("default"))
            .service(service("sensor", "sensor:1").network("default")),
        expect![[r#"
            create volume 1_data on docker
            create network shop_default on docker
            create volume 1_data on wasm
            create network shop_default on wasm
            ... shop/sensor waits for `shop_default`
            ... shop/web waits for `shop_default`
        "#]],
    );
}

#[test]
fn an_app_without_services_has_its_network_on_the_default_engine() {
    check_plan(
        device().with_wasm(),
        target().network("shop", "default", ""),
        expect![[r#"
            create network shop_default on docker
        "#]],
    );
}

#[test]
fn a_port_is_given_up_before_another_service_takes_it() {
    check_plan(
        device()
            .image("web:1")
            .image("api:1")
            .running(service("old", "old:1").port(80))
            .running(service("api", "api:1").port(81)),
        target()
            .service(service("web", "web:1").port(80))
            .service(service("api", "api:1").port(81)),
        expect![[r#"
            under locks of shop (api, old, web)
              kill shop/old (id1)
            ... shop/web waits for an old container to be removed
        "#]],
    );
}

#[test]
fn the_network_of_the_api_is_made_once_for_those_that_ask_and_stays() {
    let desired = || {
        target()
            .service(service("web", "web:1").with_api())
            .service(any_service("cafe", "till", "till:1").with_api())
    };
    let device = || device().with_api_network().image("web:1").image("till:1");
    check_plan(
        device(),
        desired(),
        expect![[r#"
        create network supervisor0 on docker
        ... cafe/till waits for `supervisor0`
        ... shop/web waits for `supervisor0`
    "#]],
    );
    check_plan(
        device().api_network(),
        desired(),
        expect![[r#"
        under locks of cafe (till)
          start cafe/till on docker
        under locks of shop (web)
          start shop/web on docker
    "#]],
    );
    check_plan(
        device().api_network(),
        target(),
        expect![[r#"
        nothing
    "#]],
    );
}

/// An administrator may have run `docker network prune` while the service was stopped.
#[test]
fn the_network_of_the_api_is_made_again_for_a_container_that_is_started_again() {
    let web = || service("web", "web:1").with_api();
    let stopped = || {
        device()
            .with_api_network()
            .image("web:1")
            .container(web(), Exited)
            .stopped("id1")
    };
    check_plan(
        stopped(),
        target().service(web()),
        expect![[r#"
        create network supervisor0 on docker
        ... shop/web waits for `supervisor0`
    "#]],
    );
    check_plan(
        stopped().api_network(),
        target().service(web()),
        expect![[r#"
        start existing shop/web (id1)
    "#]],
    );
    // One that runs uses the network, so nobody can have removed it.
    check_plan(
        device()
            .with_api_network()
            .image("web:1")
            .running(web())
            .commit("shop", "c1"),
        target().service(web()),
        expect![[r#"
        nothing
    "#]],
    );
}
