//! Update strategies, as carried out by the loop.

use std::fs;
use std::time::Duration;

use model::ServiceState;
use serde_json::{Value, json};

use crate::rig::{Rig, rig, target};

fn web(image: &str, strategy: &str, more: &Value) -> Value {
    let mut labels = json!({ "io.platform.update.strategy": strategy });
    let more = more.as_object().unwrap().clone();
    labels.as_object_mut().unwrap().extend(more);
    target()
        .service_with("web", image, json!({ "labels": labels }))
        .json()
}

async fn running(strategy: &str) -> Rig {
    let rig = rig();
    rig.set(web("web:1", strategy, &json!({}))).await;
    rig.settled().await;
    rig.engine.forget_calls();
    rig
}

#[tokio::test(start_paused = true)]
async fn kill_then_download_makes_room_first() {
    let rig = running("kill-then-download").await;
    rig.set(web("web:2", "kill-then-download", &json!({})))
        .await;
    rig.settled().await;
    assert_eq!(
        rig.engine.calls(),
        [
            "stop web",
            "remove web",
            "pull web:2",
            "create web",
            "start web"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn delete_then_download_makes_more_room() {
    let rig = running("delete-then-download").await;
    rig.set(web("web:2", "delete-then-download", &json!({})))
        .await;
    rig.settled().await;
    let calls = rig.engine.calls();
    assert_eq!(
        calls,
        [
            "stop web",
            "remove web",
            "remove image web:1",
            "pull web:2",
            "create web",
            "start web"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_ends_when_the_new_container_says_so() {
    let rig = running("hand-over").await;
    let old = rig.engine.id_of("web");
    let began = tokio::time::Instant::now();
    rig.set(web("web:2", "hand-over", &json!({}))).await;
    let status = rig
        .until(|status| {
            let services = status.apps.values().flat_map(|app| &app.services);
            let states: Vec<_> = services.map(|service| service.state).collect();
            states == [ServiceState::HandingOver, ServiceState::AwaitingHandover]
        })
        .await;
    assert!(status.applying);
    assert_eq!(
        rig.engine.picture(),
        ["old_web_1_1_c1 Running", "web_1_1_c1 Running"]
    );
    assert!(rig.lock_path("web").exists());
    let file = rig.lock_path("web").with_file_name("handover-complete");
    fs::write(&file, "").unwrap();
    rig.settled().await;
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
    assert_ne!(rig.engine.id_of("web"), old);
    assert!(!file.exists() && !rig.lock_path("web").exists());
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_that_nobody_confirms_ends_by_itself() {
    for (label, seconds) in [
        (json!({}), 60),
        (json!({ "io.platform.update.handover-timeout": "5000" }), 5),
    ] {
        let rig = running("hand-over").await;
        // A file left by an earlier container does not count.
        let file = rig.lock_path("web").with_file_name("handover-complete");
        fs::write(&file, "").unwrap();
        let began = tokio::time::Instant::now();
        rig.set(web("web:2", "hand-over", &label)).await;
        rig.settled().await;
        assert_eq!(began.elapsed().as_secs(), seconds);
        assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_container_that_does_not_start_leaves_the_old_one_running() {
    let rig = running("hand-over").await;
    let old = rig.engine.id_of("web");
    rig.engine.fail("start web", u32::MAX);
    rig.set(web("web:2", "hand-over", &json!({}))).await;
    rig.until(|status| status.update_failed).await;
    assert_eq!(rig.engine.picture(), ["old_web_1_1_c1 Running"]);
    assert_eq!(rig.engine.id_of("web"), old);

    // And it gets its name back if the target returns to it after all.
    rig.set(web("web:1", "hand-over", &json!({}))).await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
    assert_eq!(rig.engine.id_of("web"), old);
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_respects_users_locks() {
    let rig = running("hand-over").await;
    fs::write(rig.lock_path("web"), "").unwrap();
    rig.set(web("web:2", "hand-over", &json!({}))).await;
    rig.until(|status| status.update_failed).await;
    assert_eq!(rig.engine.calls(), ["pull web:2"]);
}

#[tokio::test(start_paused = true)]
async fn a_kill_in_a_hand_over_leaves_one_container() {
    for moment in 0..8 {
        let mut rig = running("hand-over").await;
        rig.engine.cut_off_at(moment);
        rig.set(web("web:2", "hand-over", &json!({}))).await;
        rig.eventually("cut off or done", || {
            rig.engine.is_cut_off() || !rig.reconciler.status().applying
        })
        .await;
        rig.restart_after_a_kill().await;
        rig.settled().await;
        assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"], "{moment}");
        let image = &rig.engine.held_containers()[0].image;
        assert_eq!(image, "web:2", "{moment}");
    }
}
