//! Each rule as a state, a target and the picture of the plan. `UPDATE_EXPECT=1` refreshes them.

use expect_test::{Expect, expect};
use model::ContainerState::{Created, Dead, Exited, Paused, Removing, Restarting};
use model::UpdateStrategy;
use plan::{Subject, plan};

use crate::build::{
    Device, Docker, Target, Wasm, device, image_ref, key, service as any_service, target,
};

/// The one driver: plans, and compares with the picture.
fn check_plan(current: Device, desired: Target, expected: Expect) {
    expected.assert_eq(&plan(&current.0, &desired.0).to_string());
}

/// A service of the app `shop`.
fn service(name: &str, image: &str) -> crate::build::Service {
    any_service("shop", name, image)
}

fn image(reference: &str) -> Subject {
    Subject::Image(image_ref(reference))
}

fn shop(service: &str) -> Subject {
    Subject::Service(key("shop", service))
}

fn locks() -> Subject {
    Subject::Locks("shop".parse().unwrap())
}

// -- images --------------------------------------------------------------------------------------

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

// -- services ------------------------------------------------------------------------------------

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
fn every_strategy_falls_back_to_download_then_kill_for_now() {
    for strategy in [
        UpdateStrategy::DownloadThenKill,
        UpdateStrategy::KillThenDownload,
        UpdateStrategy::DeleteThenDownload,
        UpdateStrategy::HandOver,
    ] {
        let device = device().image("web:1").running(service("web", "web:1"));
        let target = target().service(service("web", "web:2").strategy(strategy));
        let plan = plan(&device.0, &target.0).to_string();
        assert!(plan.starts_with("pull web:2"), "{strategy:?}: {plan}");
        assert!(!plan.contains("kill"), "{strategy:?}: {plan}");
    }
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

// -- order ---------------------------------------------------------------------------------------

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
fn a_service_in_the_network_of_another_is_made_anew_with_it() {
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
    // The other one vanished, and came back.
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

// -- volumes and networks ------------------------------------------------------------------------

#[test]
fn a_service_starts_after_its_volumes_and_networks_are_made() {
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .network("shop", "default", "")
            .busy(Subject::Volume(Docker, "1_data".into())),
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
                Subject::Network(Docker, "shop_front".into()),
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
fn users_of_a_changed_network_are_killed_before_it_is_made_anew() {
    let web = || service("web", "web:1").network("front");
    let wanted = || {
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
        wanted(),
        expect![[r#"
            under locks of shop (db, web)
              kill shop/web (id2)
            ... shop/web waits for `shop_front`
        "#]],
    );
    check_plan(
        device().network("shop", "front", "").locked("shop"),
        wanted(),
        expect![[r#"
            remove network shop_front on docker
            ... shop/web waits for `shop_front`
        "#]],
    );
    check_plan(
        device().locked("shop"),
        wanted(),
        expect![[r#"
        create network shop_front on docker
        ... shop/web waits for `shop_front`
    "#]],
    );
    check_plan(
        device().network("shop", "front", "new").locked("shop"),
        wanted(),
        expect![[r#"
            under locks of shop (db, web)
              start shop/web on docker
        "#]],
    );
}

#[test]
fn users_of_a_changed_volume_are_killed_before_it_is_made_anew() {
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
    let wanted = || {
        target()
            .service(service("web", "web:1").with_api())
            .service(any_service("cafe", "till", "till:1").with_api())
    };
    let device = || device().with_api_network().image("web:1").image("till:1");
    check_plan(
        device(),
        wanted(),
        expect![[r#"
        create network supervisor0 on docker
        ... cafe/till waits for `supervisor0`
        ... shop/web waits for `supervisor0`
    "#]],
    );
    check_plan(
        device().api_network(),
        wanted(),
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

// -- locks ---------------------------------------------------------------------------------------

#[test]
fn locks_are_of_all_services_current_and_wanted() {
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
    let wanted = || target().service(service("web", "web:1"));
    check_plan(
        device().image("web:1").locked("shop").busy(shop("web")),
        wanted(),
        expect![[r#"
            nothing
        "#]],
    );
    check_plan(
        device()
            .image("web:1")
            .running(service("web", "web:1"))
            .locked("shop"),
        wanted(),
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

// -- failures ------------------------------------------------------------------------------------

#[test]
fn a_service_that_fails_holds_up_no_other() {
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .image("api:1")
            .failed(shop("db"), "port is taken"),
        target()
            .service(service("web", "web:1"))
            .service(service("api", "api:1").after(&["db"]))
            .service(service("db", "db:1")),
        expect![[r#"
            under locks of shop (api, db, web)
              start shop/web on docker
            ... shop/api waits for `db` to be started
            ... shop/db is tried again later: port is taken
        "#]],
    );
}

#[test]
fn nothing_is_planned_twice() {
    check_plan(
        device()
            .image("web:1")
            .busy(shop("web"))
            .busy(Subject::Network(Docker, "shop_default".into()))
            .busy(locks()),
        target()
            .network("shop", "default", "")
            .service(service("web", "web:1")),
        expect![[r#"
            nothing
        "#]],
    );
}

// -- apps ----------------------------------------------------------------------------------------

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

// -- engines -------------------------------------------------------------------------------------

#[test]
fn an_image_of_a_kind_without_engine_is_waited_on() {
    check_plan(
        device().image("web:1"),
        target()
            .service(service("web", "web:1"))
            .service(service("sensor", "file:/srv/sensor.wasm")),
        expect![[r#"
            under locks of shop (sensor, web)
              start shop/web on docker
            ... shop/sensor needs the wasm engine, which this device does not have
        "#]],
    );
}

#[test]
fn nothing_is_planned_on_an_engine_that_does_not_answer() {
    check_plan(
        device().silent(Docker),
        target()
            .network("shop", "default", "")
            .service(service("web", "web:1")),
        expect![[r#"
            ... the docker engine does not answer: connection refused
            ... shop/web waits for the docker engine
        "#]],
    );
}

#[test]
fn an_image_that_a_silent_engine_may_hold_is_not_made_elsewhere() {
    check_plan(
        device()
            .with_wasm()
            .silent(Docker)
            .image_on(Wasm, "sensor:1"),
        target()
            .service(service("web", "web:1"))
            .service(any_service("cafe", "sensor", "sensor:1")),
        expect![[r#"
            under locks of cafe (sensor)
              start cafe/sensor on wasm
            ... the docker engine does not answer: connection refused
            ... shop/web waits for the docker engine
        "#]],
    );
}

#[test]
fn a_service_moves_to_the_engine_of_its_new_image() {
    check_plan(
        device()
            .with_wasm()
            .image_on(Wasm, "sensor:2")
            .running(service("sensor", "sensor:1")),
        target().service(service("sensor", "sensor:2")),
        expect![[r#"
            under locks of shop (sensor)
              kill shop/sensor (id1)
              start shop/sensor on wasm
        "#]],
    );
}
