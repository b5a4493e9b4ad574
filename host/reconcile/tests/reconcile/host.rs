use std::fs;

use model::HostPart;
use serde_json::{Value, json};

use crate::rig::{Rig, managed_rig, rig, target};

fn gpu(memory: &str) -> Value {
    target().config("HOST_CONFIG_gpu_mem", memory).json()
}

/// Returns a service that is started after a reboot.
fn careful(image: &str) -> crate::rig::Target {
    let labels = json!({ "io.platform.update.requires-reboot": "1" });
    target().service_with("web", image, json!({ "labels": labels }))
}

async fn running() -> Rig {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig
}

#[tokio::test(start_paused = true)]
async fn a_change_is_written_once_and_followed_by_one_reboot() {
    let rig = rig();
    rig.set(gpu("16")).await;
    rig.settled().await;
    assert_eq!(rig.host.done(), ["configure boot configuration", "reboot"]);
    assert_eq!(rig.host.setting("HOST_CONFIG_gpu_mem").unwrap(), "16");
    rig.set(gpu("16")).await;
    rig.settled().await;
    assert_eq!(rig.host.done().len(), 2, "it is as wanted");
    rig.set(target().json()).await;
    rig.settled().await;
    assert_eq!(rig.host.setting("HOST_CONFIG_gpu_mem"), None);
    assert_eq!(rig.host.done().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn services_are_stopped_before_a_reboot_and_run_after_it() {
    let rig = running().await;
    rig.engine.forget_calls();
    let body = target()
        .service("web", "web:1")
        .config("HOST_CONFIG_a", "1");
    rig.set(body.json()).await;
    rig.settled().await;
    assert_eq!(rig.engine.calls(), ["stop web", "start web"]);
    assert_eq!(rig.host.boots(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_users_lock_holds_up_the_reboot_and_its_removal_lets_go() {
    let rig = running().await;
    fs::write(rig.lock_path("web"), "").unwrap();
    let body = || {
        target()
            .service("web", "web:1")
            .config("HOST_CONFIG_a", "1")
    };
    rig.set(body().json()).await;
    let status = rig.until(|status| status.update_failed).await;
    let why = "Lockfile exists for { appId: 1, service: web }";
    assert_eq!(
        status.waiting_on,
        [format!(
            "the reboot of the host is tried again later: {why}"
        )]
    );
    assert_eq!(rig.host.done(), ["configure boot configuration"]);
    fs::remove_file(rig.lock_path("web")).unwrap();
    rig.settled().await;
    assert_eq!(rig.host.boots(), 1);
}

#[tokio::test(start_paused = true)]
async fn force_and_the_override_variable_go_before_a_users_lock() {
    for (config, force) in [("SUPERVISOR_OVERRIDE_LOCK", false), ("HOST_CONFIG_b", true)] {
        let rig = running().await;
        fs::write(rig.lock_path("web"), "").unwrap();
        let body = target()
            .service("web", "web:1")
            .config("HOST_CONFIG_a", "1")
            .config(config, "1");
        let set = rig.reconciler.set_local_target(body.json(), force);
        set.await.unwrap();
        rig.settled().await;
        assert_eq!(rig.host.boots(), 1, "{config}");
        assert!(!rig.lock_path("web").exists());
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_setting_is_told_and_nothing_is_written() {
    let rig = rig();
    rig.host
        .refuse(Some("`HOST_CONFIG_kernel`: not to be changed"));
    let body = target().config("HOST_CONFIG_kernel", "x").json();
    let warnings = rig.reconciler.set_local_target(body, false).await.unwrap();
    assert_eq!(
        warnings,
        ["the host's boot configuration is not changed: `HOST_CONFIG_kernel`: not to be changed"]
    );
    let status = rig
        .until(|status| status.update_failed && !status.waiting_on.is_empty())
        .await;
    assert_eq!(
        status.waiting_on,
        [
            "the host's boot configuration is tried again later: `HOST_CONFIG_kernel`: not to be changed"
        ]
    );
    assert!(rig.host.done().is_empty());
    let shown = rig.reconciler.local_target();
    assert_eq!(shown["local"]["config"]["HOST_CONFIG_kernel"], "x");
    // Another target is another attempt.
    rig.host.refuse(None);
    rig.set(gpu("16")).await;
    rig.settled().await;
    assert_eq!(rig.host.boots(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_forgets_what_was_written_is_rebooted_three_times_and_not_for_ever() {
    let mut rig = rig();
    rig.host.forget_at_boot(true);
    rig.set(gpu("16")).await;
    let status = rig
        .until(|status| status.waiting_on.iter().any(|why| why.contains("3 times")))
        .await;
    assert!(status.applying, "the target is not reached");
    assert_eq!(rig.host.boots(), 3);
    // Not after a restart either, nor for the same target once more.
    rig.restart().await;
    rig.until(|status| status.waiting_on.iter().any(|why| why.contains("3 times")))
        .await;
    rig.set(gpu("16")).await;
    rig.until(|status| !status.waiting_on.is_empty()).await;
    assert_eq!(rig.host.boots(), 3);
    rig.host.forget_at_boot(false);
    rig.set(gpu("32")).await;
    rig.settled().await;
    assert_eq!(rig.host.boots(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_journals_storage_follows_its_variable() {
    let rig = rig();
    let on = target().config("SUPERVISOR_PERSISTENT_LOGGING", "on");
    rig.set(on.json()).await;
    rig.settled().await;
    assert_eq!(rig.host.done(), ["configure journal's storage", "reboot"]);
    assert!(rig.host.has(HostPart::PersistentLogging));
}

#[tokio::test(start_paused = true)]
async fn without_a_target_the_host_is_left_as_it_is() {
    let rig = rig();
    rig.host.put("HOST_CONFIG_gpu_mem", "64");
    rig.reconciler.answers().await;
    rig.settled().await;
    assert!(rig.host.done().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_clouds_target_configures_the_host_and_local_mode_its_own() {
    let rig = managed_rig();
    rig.cloud_says(target().config("HOST_CONFIG_a", "1")).await;
    rig.settled().await;
    assert_eq!(rig.host.setting("HOST_CONFIG_a").unwrap(), "1");
    let local = target()
        .config("HOST_CONFIG_a", "1")
        .config("SUPERVISOR_LOCAL_MODE", "1");
    rig.cloud_says(local).await;
    rig.settled().await;
    assert_eq!(rig.host.boots(), 1, "entering local mode changes nothing");
    rig.set(gpu("16")).await;
    rig.until(|status| !status.applying).await;
    assert_eq!(rig.host.setting("HOST_CONFIG_a"), None);
    assert_eq!(rig.host.boots(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_requires_a_reboot_runs_after_it() {
    let rig = rig();
    rig.set(careful("web:1").json()).await;
    rig.settled().await;
    assert_eq!(rig.host.done(), ["reboot"]);
    let calls = rig.engine.calls();
    assert!(
        calls.ends_with(&["create web".into(), "start web".into()]),
        "{calls:?}"
    );
    assert_eq!(calls.iter().filter(|call| *call == "start web").count(), 1);
    // It has run: later stops and starts require no reboot.
    rig.set(careful("web:2").json()).await;
    rig.settled().await;
    assert_eq!(rig.host.boots(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_comes_by_itself_is_as_good() {
    let mut rig = rig();
    rig.host.stay("Waiting for Host OS update to finish");
    rig.set(careful("web:1").json()).await;
    let waits = |status: &model::DeviceStatus| {
        let mut waits = status.waiting_on.iter();
        waits.any(|why| why.contains("Waiting for Host OS update"))
    };
    rig.until(waits).await;
    rig.restart().await;
    rig.until(waits).await;
    assert!(!rig.engine.calls().contains(&"start web".into()));
    rig.host.boot_by_itself();
    rig.restart().await;
    rig.settled().await;
    assert!(rig.engine.calls().contains(&"start web".into()));
    assert!(rig.host.done().is_empty());
}
