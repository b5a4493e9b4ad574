//! API keys of services that are gone (docs/spec/device.md#keys-scope).

use serde_json::{Value, json};

use crate::rig::{Target, managed_rig, rig, target};

/// Requests a key.
fn with_key() -> Value {
    json!({ "labels": { "io.platform.features.supervisor-api": "1" } })
}

fn release(services: &[&str], version: u32) -> Target {
    let add = |target: Target, name: &&str| {
        target.service_with(name, &format!("{name}:{version}"), with_key())
    };
    services.iter().fold(target(), add)
}

#[tokio::test(start_paused = true)]
async fn a_key_is_kept_over_updates_and_restarts_and_ends_with_its_service() {
    let mut rig = rig();
    rig.set(release(&["db", "old", "web"], 1).json()).await;
    rig.until_keys_are_of(&["db", "old", "web"]).await;
    let key = rig.key_of("web");
    rig.settled().await;
    rig.set(release(&["db", "web"], 2).json()).await;
    rig.until_keys_are_of(&["db", "web"]).await;
    rig.restart().await;
    rig.set(release(&["web"], 2).json()).await;
    rig.until_keys_are_of(&["web"]).await;
    assert_eq!(rig.key_of("web"), key);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_kept_while_a_container_has_it_that_an_update_lock_keeps() {
    let rig = rig();
    rig.set(release(&["old", "web"], 1).json()).await;
    rig.settled().await;
    let lock = rig.lock_path("old");
    std::fs::write(&lock, "").unwrap();
    rig.set(release(&["web"], 1).json()).await;
    rig.until(|status| status.update_failed).await;
    assert_eq!(rig.engine.held_containers().len(), 2);
    rig.until_keys_are_of(&["old", "web"]).await;
    std::fs::remove_file(&lock).unwrap();
    rig.until_keys_are_of(&["web"]).await;
}

#[tokio::test(start_paused = true)]
async fn in_local_mode_the_fleets_services_keep_their_keys_without_containers() {
    let rig = managed_rig();
    rig.cloud_says(release(&["web"], 1)).await;
    rig.settled().await;
    let key = rig.key_of("web");
    rig.cloud_says(release(&["web"], 1).config("SUPERVISOR_LOCAL_MODE", "true"))
        .await;
    rig.set(release(&["dev", "old"], 1).json()).await;
    rig.until_keys_are_of(&["dev", "old", "web"]).await;
    rig.settled().await;
    rig.set(release(&["dev"], 1).json()).await;
    rig.until_keys_are_of(&["dev", "web"]).await;
    assert_eq!(rig.engine.picture(), ["dev_1_1_c1 Running"]);
    assert_eq!(rig.key_of("web"), key);
}
