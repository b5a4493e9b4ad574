//! A device with a cloud: its target, and local mode.

use model::SetTargetError;
use serde_json::{Value, json};

use crate::rig::{Rig, Target, managed_rig, target};

const LOCAL_MODE: &str = "SUPERVISOR_LOCAL_MODE";

fn fleet() -> Target {
    target().service("web", "web:1")
}

/// Returns a device that runs the fleet's release.
async fn running() -> Rig {
    let rig = managed_rig();
    rig.cloud_says(fleet()).await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
    rig
}

/// Returns such a device in local mode, running something else.
async fn in_local_mode() -> Rig {
    let rig = running().await;
    rig.cloud_says(fleet().config(LOCAL_MODE, "true")).await;
    rig.settled().await;
    rig.set(target().service("dev", "dev:1").commit("local").json())
        .await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["dev_1_1_local Running"]);
    rig
}

#[tokio::test(start_paused = true)]
async fn a_device_with_a_cloud_touches_nothing_before_it_has_heard_of_it() {
    let rig = managed_rig();
    rig.settled().await;
    assert!(!rig.reconciler.local_mode());
    assert_eq!(rig.reconciler.device_name(), "bench");
    let refused = rig.reconciler.set_local_target(fleet().json(), false).await;
    assert!(matches!(refused, Err(SetTargetError::NotLocalMode)));
}

#[tokio::test(start_paused = true)]
async fn the_clouds_target_is_reached_and_outlives_a_restart_without_the_cloud() {
    let mut rig = running().await;
    assert_eq!(rig.reconciler.device_name(), "by-cloud");
    rig.restart().await;
    assert_eq!(rig.reconciler.device_name(), "by-cloud");
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
    rig.cloud_says(target().service("web", "web:2").commit("c2"))
        .await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c2 Running"]);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_target_of_the_cloud_changes_nothing() {
    let rig = running().await;
    for invalid in [
        json!({}),
        json!([]),
        json!({ "0".repeat(32): { "name": "x", "config": {}, "apps": {} } }),
        fleet()
            .service_with("db", "db:1", json!({ "environment": { "A": 1 } }))
            .cloud_json(rig.uuid()),
        fleet()
            .service_with(
                "db",
                "db:1",
                json!({ "contract": { "requires": [{ "type": "luck" }] } }),
            )
            .cloud_json(rig.uuid()),
    ] {
        let refused = rig
            .reconciler
            .set_cloud_target(invalid.clone(), false)
            .await;
        let Err(SetTargetError::Invalid(errors)) = refused else {
            panic!("{invalid}: {refused:?}");
        };
        assert!(errors.to_string().starts_with("Invalid target state.\n"));
    }
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
}

#[tokio::test(start_paused = true)]
async fn an_app_whose_contract_is_not_met_is_left_as_it_runs() {
    let rig = running().await;
    let needs = |arch: &str, labels: Value| {
        let contract = json!({ "requires": [{ "type": "arch.sw", "slug": arch }] });
        json!({ "contract": contract, "labels": labels })
    };
    let next = || target().service("web", "web:2").commit("c2");
    rig.cloud_says(next().service_with("gpu", "gpu:1", needs("riscv", json!({}))))
        .await;
    let status = rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
    let app = status.apps.values().next().unwrap();
    assert_eq!(app.state, model::ReleaseState::Rejected);

    let optional = json!({ "io.platform.features.optional": "1" });
    rig.cloud_says(next().service_with("gpu", "gpu:1", needs("riscv", optional)))
        .await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c2 Running"]);
}

#[tokio::test(start_paused = true)]
async fn local_mode_replaces_the_fleet_and_the_fleet_comes_back_after_it() {
    let rig = in_local_mode().await;
    // Images and volumes of the fleet are kept meanwhile.
    assert!(
        rig.engine
            .held_names()
            .iter()
            .any(|name| name.contains("web:1"))
    );
    // Everything else from the cloud takes effect when local mode is over.
    rig.cloud_says(
        target()
            .service("web", "web:2")
            .commit("c2")
            .config(LOCAL_MODE, "1"),
    )
    .await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["dev_1_1_local Running"]);

    rig.cloud_says(target().service("web", "web:2").commit("c2"))
        .await;
    assert!(!rig.reconciler.local_mode());
    rig.until(|status| !status.applying && !status.apps.is_empty())
        .await;
    rig.eventually("the fleet is back", || {
        rig.engine.picture() == ["web_1_1_c2 Running"]
    })
    .await;
    rig.settled().await;
    let held = rig.engine.held_names();
    assert!(!held.iter().any(|name| name.contains("dev")), "{held:?}");
    assert_eq!(rig.reconciler.local_target()["local"]["apps"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn local_mode_begins_with_the_devices_name_and_variables_and_keeps_them_to_itself() {
    let rig = running().await;
    let with = |value: &str| {
        fleet()
            .config(LOCAL_MODE, "on")
            .config("HOST_CONFIG_gpu_mem", value)
    };
    rig.cloud_says(with("16")).await;
    let local = &rig.reconciler.local_target()["local"];
    assert_eq!(local["name"], "by-cloud");
    assert_eq!(local["apps"], json!({}));
    assert_eq!(local["config"]["HOST_CONFIG_gpu_mem"], "16");
    rig.cloud_says(with("32")).await;
    let variables = rig.reconciler.variables();
    assert_eq!(variables["HOST_CONFIG_gpu_mem"], "16");
    rig.cloud_says(with("32").config(LOCAL_MODE, "0")).await;
    rig.settled().await;
    let variables = rig.reconciler.variables();
    assert_eq!(variables["HOST_CONFIG_gpu_mem"], "32");
}

#[tokio::test(start_paused = true)]
async fn local_mode_that_is_left_on_the_device_stays_off_until_the_cloud_says_so_anew() {
    let mut rig = in_local_mode().await;
    rig.set(target().config(LOCAL_MODE, "false").json()).await;
    rig.eventually("the fleet is back", || {
        rig.engine.picture() == ["web_1_1_c1 Running"]
    })
    .await;
    // The same target again, as after each restart.
    rig.restart().await;
    rig.cloud_says(fleet().config(LOCAL_MODE, "true")).await;
    rig.settled().await;
    assert!(!rig.reconciler.local_mode());
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
    rig.cloud_says(fleet()).await;
    rig.cloud_says(fleet().config(LOCAL_MODE, "true")).await;
    assert!(rig.reconciler.local_mode());
}

#[tokio::test(start_paused = true)]
async fn local_mode_outlives_a_restart_and_its_end_is_finished_after_a_kill() {
    let mut rig = in_local_mode().await;
    rig.restart().await;
    assert!(rig.reconciler.local_mode());
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["dev_1_1_local Running"]);

    rig.engine.cut_off_at(0);
    rig.cloud_says(fleet()).await;
    rig.eventually("cut off", || rig.engine.is_cut_off()).await;
    rig.restart_after_a_kill().await;
    rig.eventually("the fleet is back", || {
        rig.engine.picture() == ["web_1_1_c1 Running"]
    })
    .await;
    assert!(!rig.reconciler.local_mode());
}

#[tokio::test(start_paused = true)]
async fn a_device_that_has_just_got_a_cloud_leaves_the_local_mode_that_it_had_without() {
    let mut rig = crate::rig::rig();
    rig.set(target().service("dev", "dev:1").json()).await;
    rig.settled().await;
    rig.managed = true;
    rig.restart().await;
    rig.settled().await;
    assert_eq!(
        rig.engine.picture(),
        ["dev_1_1_c1 Running"],
        "as before it has heard of its cloud"
    );
    rig.cloud_says(fleet()).await;
    rig.eventually("the fleet runs", || {
        rig.engine.picture() == ["web_1_1_c1 Running"]
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn apps_that_are_no_fleet_run_on_in_local_mode() {
    let rig = in_local_mode().await;
    let mut with_block = fleet().config(LOCAL_MODE, "true").cloud_json(rig.uuid());
    let app = with_block[rig.uuid()]["apps"]["fleet"].clone();
    let apps = &mut with_block[rig.uuid()]["apps"];
    apps["block"] = app;
    apps["block"]["id"] = json!(2);
    apps["block"]["class"] = json!("block");
    let result = rig.reconciler.set_cloud_target(with_block, false).await;
    result.unwrap();
    rig.settled().await;
    assert_eq!(
        rig.engine.picture(),
        ["dev_1_1_local Running", "web_1_1_c1 Running"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_is_pending_while_the_cloud_is_asked() {
    let rig = running().await;
    rig.reconciler.set_checking(true);
    let status = rig.until(|status| status.update_pending).await;
    assert!(!status.applying);
    rig.reconciler.set_checking(false);
    rig.until(|status| !status.update_pending).await;
}
