//! A supervisor that is killed at any moment: the next one reaches the target, with nothing doubled, lost or left
//! locked, and leaves alone everything that the update does not concern.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::rig::{rig, target};

fn before() -> Value {
    target()
        .network("front", json!({}))
        .service("web", "web:1")
        .service("db", "db:1")
        .service_with("proxy", "proxy:1", json!({ "networks": ["front"] }))
        .service("steady", "steady:1")
        .service("gone", "gone:1")
        .json()
}

/// Returns the target with a change, a removal, a new dependency, and a network that is recreated.
fn after() -> Value {
    target()
        .network("front", json!({ "internal": true }))
        .service("web", "web:2")
        .service_with("db", "db:1", json!({ "depends_on": ["cache"] }))
        .service_with("proxy", "proxy:1", json!({ "networks": ["front"] }))
        .service("steady", "steady:1")
        .service("cache", "cache:1")
        .json()
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_call_of_an_update_is_absorbed() {
    let mut moments = 0;
    loop {
        let mut rig = rig();
        rig.set(before()).await;
        rig.settled().await;
        let steady = rig.engine.id_of("steady");
        rig.engine.cut_off_at(moments);
        rig.set(after()).await;
        rig.eventually("cut off or done", || {
            rig.engine.is_cut_off() || !rig.reconciler.status().applying
        })
        .await;
        let done = !rig.engine.is_cut_off();
        rig.restart_after_a_kill().await;
        rig.settled().await;

        let picture: BTreeSet<String> = rig.engine.picture().into_iter().collect();
        let desired = [
            "cache_5_1_c1 Running",
            "db_2_1_c1 Running",
            "proxy_3_1_c1 Running",
            "steady_4_1_c1 Running",
            "web_1_1_c1 Running",
        ];
        assert_eq!(
            picture,
            desired.map(str::to_owned).into(),
            "killed at call {moments}"
        );
        assert_eq!(
            rig.engine.held_containers().len(),
            5,
            "killed at call {moments}"
        );
        assert_eq!(
            rig.engine.id_of("steady"),
            steady,
            "killed at call {moments}"
        );
        for service in ["web", "db", "proxy", "steady", "gone", "cache"] {
            assert!(
                !rig.lock_path(service).exists(),
                "killed at call {moments}: {service}"
            );
        }
        if done {
            break;
        }
        moments += 1;
    }
    // Two pulls, two kills, a network twice, creations and starts.
    assert!(moments >= 12, "{moments}");
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_call_of_an_installation_is_absorbed() {
    let mut moments = 0;
    loop {
        let mut rig = rig();
        rig.engine.cut_off_at(moments);
        rig.set(before()).await;
        rig.eventually("cut off or done", || {
            rig.engine.is_cut_off() || !rig.reconciler.status().applying
        })
        .await;
        let done = !rig.engine.is_cut_off();
        rig.restart_after_a_kill().await;
        rig.settled().await;
        let picture = rig.engine.picture();
        assert_eq!(picture.len(), 5, "killed at call {moments}: {picture:?}");
        let running = picture
            .iter()
            .all(|container| container.ends_with("Running"));
        assert!(running, "killed at call {moments}: {picture:?}");
        if done {
            break;
        }
        moments += 1;
    }
    assert!(moments >= 15, "{moments}");
}
