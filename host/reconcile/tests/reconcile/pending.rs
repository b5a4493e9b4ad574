//! Actions while an update is pending: they apply to the app in its current state, which is updated afterwards.

use std::fs;

use model::{Action, Verb};
use serde_json::{Value, json};

use crate::rig::{DEADLINE, Rig, Target, rig, target};

fn first() -> Target {
    target()
        .service_with("web", "web:1", json!({ "volumes": ["data:/data"] }))
        .service("db", "db:1")
        .network("inner", json!({}))
}

/// Another image of one service, another configuration of the other, another network, another volume.
fn second() -> Target {
    target()
        .service_with("web", "web:2", json!({ "volumes": ["data:/data"] }))
        .service_with("db", "db:1", json!({ "environment": { "NEW": "1" } }))
        .network("inner", json!({ "internal": true }))
        .network("more", json!({}))
        .commit("c2")
}

fn action(verb: Verb) -> Action {
    Action {
        app: "1".parse().unwrap(),
        verb,
        force: false,
    }
}

fn restart(service: &str) -> Verb {
    Verb::Restart(Some(service.parse().unwrap()))
}

/// Runs the action, although the download does not end.
async fn act(rig: &Rig, action: Action) {
    let acting = tokio::time::timeout(DEADLINE, rig.reconciler.act(action));
    let Ok(done) = acting.await else {
        panic!("it waits for a download");
    };
    done.unwrap();
}

/// Returns a device that runs the first release and is downloading the second.
async fn downloading() -> Rig {
    let rig = rig();
    rig.set(first().json()).await;
    rig.settled().await;
    rig.engine.hold("pull web:2");
    rig.set(second().json()).await;
    rig.eventually("downloading", || rig.engine.waiting() > 0)
        .await;
    rig.engine.forget_calls();
    rig
}

fn sorted(mut picture: Vec<String>) -> Vec<String> {
    picture.sort();
    picture
}

const AS_IT_WAS: [&str; 2] = ["db_2_1_c1 Running", "web_1_1_c1 Running"];
const UPDATED: [&str; 2] = ["db_2_1_c2 Running", "web_1_1_c2 Running"];

async fn goes_on_with_the_update(rig: &Rig) {
    rig.engine.let_go("pull web:2");
    rig.settled().await;
    assert_eq!(sorted(rig.engine.picture()), UPDATED);
    assert!(!rig.lock_path("web").exists());
}

#[tokio::test(start_paused = true)]
async fn a_restart_brings_the_current_release_back_before_the_pending_one_is_here() {
    let rig = downloading().await;
    let before = (rig.engine.id_of("web"), rig.engine.id_of("db"));
    act(&rig, action(Verb::Restart(None))).await;
    assert_eq!(sorted(rig.engine.picture()), AS_IT_WAS);
    assert_ne!(rig.engine.id_of("web"), before.0);
    assert_ne!(rig.engine.id_of("db"), before.1);
    // The download continues, and nothing of the new release counts as reached.
    assert_eq!(rig.engine.waiting(), 1);
    assert!(rig.reconciler.status().applying);
    goes_on_with_the_update(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_purge_empties_the_volumes_of_the_current_release_and_brings_it_back() {
    let rig = downloading().await;
    act(&rig, action(Verb::Purge)).await;
    assert_eq!(sorted(rig.engine.picture()), AS_IT_WAS);
    let calls = rig.engine.calls();
    for call in ["remove volume 1_data", "create volume 1_data"] {
        assert!(calls.contains(&call.to_owned()), "{call}: {calls:?}");
    }
    assert_eq!(rig.engine.waiting(), 1);
    goes_on_with_the_update(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_one_service_does_not_wait_for_the_download_of_another() {
    for service in ["web", "db"] {
        let rig = downloading().await;
        let (web, db) = (rig.engine.id_of("web"), rig.engine.id_of("db"));
        act(&rig, action(restart(service))).await;
        assert_eq!(sorted(rig.engine.picture()), AS_IT_WAS);
        assert_eq!(rig.engine.id_of("web") != web, service == "web");
        assert_eq!(rig.engine.id_of("db") != db, service == "db");
        goes_on_with_the_update(&rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_is_stopped_and_started_without_waiting_for_a_download() {
    let rig = downloading().await;
    let ids = (rig.engine.id_of("web"), rig.engine.id_of("db"));
    for service in ["web", "db"] {
        act(&rig, action(Verb::Stop(service.parse().unwrap()))).await;
        let call = format!("stop {service}");
        assert!(rig.engine.calls().contains(&call), "{service}");
    }
    let stopped = ["db_2_1_c1 Exited", "web_1_1_c1 Exited"];
    assert_eq!(sorted(rig.engine.picture()), stopped);
    act(&rig, action(Verb::Start("web".parse().unwrap()))).await;
    let started = ["db_2_1_c1 Exited", "web_1_1_c1 Running"];
    assert_eq!(sorted(rig.engine.picture()), started);
    assert_eq!(ids, (rig.engine.id_of("web"), rig.engine.id_of("db")));
    goes_on_with_the_update(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_one_service_takes_the_target_where_its_images_are_here() {
    let rig = rig();
    rig.set(first().json()).await;
    rig.settled().await;
    fs::write(rig.lock_path("web"), "").unwrap();
    rig.set(second().json()).await;
    rig.until(|status| status.update_failed).await;
    let forced = Action {
        force: true,
        ..action(restart("web"))
    };
    act(&rig, forced).await;
    assert!(
        rig.engine
            .picture()
            .contains(&"web_1_1_c2 Running".to_owned())
    );
    rig.settled().await;
    assert_eq!(sorted(rig.engine.picture()), UPDATED);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_an_app_whose_update_is_locked_brings_the_current_release_back() {
    let rig = rig();
    rig.set(first().json()).await;
    rig.settled().await;
    fs::write(rig.lock_path("web"), "").unwrap();
    rig.set(second().json()).await;
    rig.until(|status| status.update_failed).await;
    rig.engine.forget_calls();
    let forced = Action {
        force: true,
        ..action(Verb::Restart(None))
    };
    act(&rig, forced).await;
    // The lock is gone for good, and so the update is no longer blocked: the app starts in its previous state, then is
    // updated.
    rig.settled().await;
    assert_eq!(sorted(rig.engine.picture()), UPDATED);
    let calls = rig.engine.calls();
    let starts = calls.iter().filter(|call| *call == "start web").count();
    assert_eq!(starts, 2, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_purge_cut_short_while_an_update_is_pending_is_finished_as_it_was_begun() {
    for calls in 1..14 {
        let mut rig = downloading().await;
        rig.engine.cut_off_at(calls);
        let reconciler = rig.reconciler.clone();
        let purge = tokio::spawn(async move { reconciler.act(action(Verb::Purge)).await });
        rig.eventually("cut off or done", || {
            rig.engine.is_cut_off() || purge.is_finished()
        })
        .await;
        rig.restart_after_a_kill().await;
        // The next supervisor waits for the image as well.
        rig.eventually("both run again", || {
            sorted(rig.engine.picture()) == AS_IT_WAS && rig.engine.waiting() > 0
        })
        .await;
        rig.engine.let_go("pull web:2");
        rig.settled().await;
        assert_eq!(sorted(rig.engine.picture()), UPDATED, "{calls}");
        purge.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn the_definition_of_what_runs_outlives_the_supervisor() {
    let mut rig = downloading().await;
    rig.restart().await;
    rig.eventually("downloading", || rig.engine.waiting() > 0)
        .await;
    act(&rig, action(Verb::Restart(None))).await;
    assert_eq!(sorted(rig.engine.picture()), AS_IT_WAS);
    goes_on_with_the_update(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_not_remembered() {
    let rig = rig();
    for number in 0..5 {
        let changed: Value = json!({ "environment": { "N": number.to_string() } });
        let release = target().service_with("web", "web:1", changed);
        rig.set(release.json()).await;
        rig.settled().await;
    }
    rig.eventually("forgotten", || {
        let kept = rig.definitions();
        kept.iter().filter(|d| d.subject == "service 1/web").count() == 1
    })
    .await;
}
