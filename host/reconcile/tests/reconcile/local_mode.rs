use model::SetTargetError;
use serde_json::json;

use crate::rig::{rig, target};

#[tokio::test(start_paused = true)]
async fn a_device_without_a_cloud_is_in_local_mode_from_its_start() {
    let mut rig = rig();
    assert!(rig.reconciler.local_mode());
    let local = rig.reconciler.local_target();
    assert_eq!(local["local"]["apps"], json!({}));
    assert_eq!(local["local"]["config"]["SUPERVISOR_LOCAL_MODE"], "true");

    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.restart().await;
    let local = rig.reconciler.local_target();
    assert_eq!(
        local["local"]["apps"]["1"]["services"]["1"]["image"],
        "web:1"
    );
}

#[tokio::test(start_paused = true)]
async fn an_invalid_target_changes_nothing() {
    let rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    let refused = rig
        .reconciler
        .set_local_target(json!({ "local": { "apps": { "x": 1 } } }), false)
        .await;
    let Err(SetTargetError::Invalid(errors)) = refused else {
        panic!("{refused:?}");
    };
    assert!(errors.to_string().starts_with("Invalid target state.\n"));
    let local = rig.reconciler.local_target();
    assert_eq!(
        local["local"]["apps"]["1"]["services"]["1"]["image"],
        "web:1"
    );
    assert!(!rig.reconciler.status().applying);
}

#[tokio::test(start_paused = true)]
async fn leaving_local_mode_removes_what_was_made_in_it() {
    let mut rig = rig();
    rig.set(
        target()
            .service("web", "web:1")
            .service("db", "db:1")
            .json(),
    )
    .await;
    rig.settled().await;
    // Only a device with a cloud can leave it.
    rig.managed = true;
    rig.restart().await;
    rig.settled().await;
    rig.set(target().config("SUPERVISOR_LOCAL_MODE", "false").json())
        .await;
    assert!(!rig.reconciler.local_mode());
    rig.settled().await;
    assert_eq!(rig.engine.picture(), Vec::<String>::new());
    assert_eq!(rig.engine.held_names(), Vec::<String>::new());
    let refused = rig
        .reconciler
        .set_local_target(target().json(), false)
        .await;
    assert!(matches!(refused, Err(SetTargetError::NotLocalMode)));
    assert_eq!(rig.reconciler.local_target()["local"]["apps"], json!({}));
    // A device that no longer has a cloud has no other mode: after its next start, it is in local mode again.
    rig.managed = false;
    rig.restart().await;
    assert!(rig.reconciler.local_mode());
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
}

#[tokio::test(start_paused = true)]
async fn a_posted_answer_does_not_leave_local_mode() {
    let rig = rig();
    let answer = rig.reconciler.local_target();
    rig.set(answer).await;
    assert!(rig.reconciler.local_mode());
}

#[tokio::test(start_paused = true)]
async fn leaving_local_mode_is_finished_after_a_kill() {
    let mut rig = rig();
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    rig.managed = true;
    rig.restart().await;
    rig.settled().await;
    rig.engine.cut_off_at(0);
    rig.set(target().config("SUPERVISOR_LOCAL_MODE", "false").json())
        .await;
    rig.eventually("cut off", || rig.engine.is_cut_off()).await;
    rig.managed = false;
    rig.restart_after_a_kill().await;
    rig.eventually("clean", || rig.engine.picture().is_empty())
        .await;
    // It no longer has a cloud, so it is in local mode again when that is done.
    rig.eventually("in local mode", || rig.reconciler.local_mode())
        .await;
    rig.settled().await;
    assert_eq!(rig.engine.held_names(), Vec::<String>::new());
    rig.set(target().service("web", "web:1").json()).await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["web_1_1_c1 Running"]);
}
