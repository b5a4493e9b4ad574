//! `GET /v3/plan`: what would change, and what delays it.

use std::fs;

use serde_json::{Value, json};
use tests::{Supervisor, guest, service, target, until};

fn kinds(plan: &Value) -> Vec<&str> {
    let steps = plan["steps"].as_array().unwrap();
    let kinds = steps.iter().map(|step| step["kind"].as_str().unwrap());
    kinds.collect()
}

#[tokio::test]
async fn the_plan_says_what_a_locked_update_waits_for_and_ends_empty() {
    let device = Supervisor::on_wasm().start().await;
    let server = guest("hello-server");
    let target_of = |variable: &str| {
        let changed = json!({"environment": {"CHANGED": variable}});
        target(
            7,
            &[
                service("web", &server, &changed),
                service("db", &server, &json!({})),
            ],
        )
    };
    device.set_target(&target_of("no")).await;
    device.until_applied().await;
    let settled = device.json("/v3/plan").await;
    assert_eq!(
        settled,
        json!({
            "status": "success", "state": "settled", "localMode": true,
            "steps": [], "unplanned": [], "cutShort": false,
        })
    );

    let folder = device
        .host_root()
        .join("tmp/platform-supervisor/services/7/db");
    let lock = folder.join("updates.lock");
    fs::write(&lock, "").unwrap();
    let before = device.json("/v2/state/status").await["containers"].clone();
    device.set_target(&target_of("yes")).await;
    let plan = until("the lock to be in the way", || async {
        let plan = device.json("/v3/plan").await;
        let blockers = plan["steps"][0]["blockedBy"].as_array().cloned();
        let blockers = blockers.unwrap_or_default();
        if blockers.iter().any(|by| by["kind"] == "back-off") {
            Ok(plan)
        } else {
            Err(plan)
        }
    })
    .await;
    assert_eq!(kinds(&plan), ["remove-service", "start-service"], "{plan}");
    for step in plan["steps"].as_array().unwrap() {
        assert_eq!(step["state"], "blocked", "{step}");
        assert_eq!(step["reason"], "configuration-changed", "{step}");
        assert_eq!(
            (&step["appId"], &step["service"]),
            (&json!(7), &json!("web"))
        );
        assert_eq!(
            step["blockedBy"][0],
            json!({
                "kind": "lock", "appId": 7, "service": "db",
                "message": "the service `db` holds its update lock",
            })
        );
    }
    assert_eq!(
        device.json("/v2/state/status").await["containers"],
        before,
        "asking changed something"
    );

    fs::remove_file(&lock).unwrap();
    device.until_applied().await;
    assert_eq!(device.json("/v3/plan").await["steps"], json!([]));
}

#[tokio::test]
async fn a_failed_download_is_repeated_and_later_steps_wait() {
    let device = Supervisor::on_wasm().start().await;
    let missing = std::path::Path::new("/nowhere/at-all.wasm");
    device
        .set_target(&target(1, &[service("web", missing, &json!({}))]))
        .await;
    let plan = until("the pull to have failed", || async {
        let plan = device.json("/v3/plan").await;
        let steps = plan["steps"].as_array().cloned().unwrap_or_default();
        let failed = steps
            .iter()
            .any(|step| step["kind"] == "pull-image" && step["blockedBy"][0]["kind"] == "back-off");
        if failed { Ok(plan) } else { Err(plan) }
    })
    .await;
    let steps = plan["steps"].as_array().unwrap();
    let start = steps.iter().find(|step| step["kind"] == "start-service");
    assert_eq!(
        start.unwrap()["blockedBy"][0],
        json!({
            "kind": "image", "image": "file:/nowhere/at-all.wasm",
            "message": "the image `file:/nowhere/at-all.wasm` is not available yet",
        })
    );
}
