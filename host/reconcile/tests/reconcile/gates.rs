//! Updates that a plugin postpones (docs/spec/device.md#locks-gates).

use std::fs;
use std::time::Duration;

use device_types::Event;
use device_types::plan::Blocker;
use reconcile::UpdatePostponement;
use serde_json::json;
use tokio::time::Instant;

use crate::rig::{Rig, Target, managed_rig, rig, target};

const DELAY: Duration = Duration::from_secs(600);

fn press(image: &str, commit: &str) -> Target {
    target().service("press", image).commit(commit)
}

/// Returns a device that runs `press:1`, and whose updates wait.
async fn held() -> Rig {
    let rig = managed_rig();
    rig.cloud_says(press("press:1", "c1")).await;
    rig.settled().await;
    rig.host.postpone(Some(UpdatePostponement {
        plugin: "guard".to_owned(),
        reason: "the press is running".to_owned(),
        delay: DELAY,
    }));
    rig
}

async fn until_postponed(rig: &Rig) {
    rig.until(|status| {
        let mut waiting = status.waiting_on.iter();
        waiting.any(|why| why.contains("the press is running"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_update_waits_for_as_long_as_somebody_wants_it_to() {
    let rig = held().await;
    rig.cloud_says(press("press:2", "c2")).await;
    until_postponed(&rig).await;
    assert_eq!(rig.host.begun_updates(), []);
    assert_eq!(rig.engine.picture(), ["press_1_1_c1 Running"]);
    // Only the services are postponed.
    let calls = rig.engine.calls();
    assert!(calls.iter().any(|call| call == "pull press:2"), "{calls:?}");
    let plan = rig.reconciler.plan().await.unwrap();
    let mut blockers = plan.steps.iter().flat_map(|step| &step.blocked_by);
    let gate = blockers.find(|blocked| matches!(blocked.by, Blocker::UpdateGate { .. }));
    assert_eq!(
        gate.unwrap().message,
        "the plugin `guard` postpones the update: the press is running"
    );
    let events = rig.events.lock().unwrap().clone();
    let postponed = events.iter().find_map(|(_, event)| match event {
        Event::UpdatePostponed(postponed) => Some(postponed),
        _ => None,
    });
    let postponed = postponed.unwrap();
    assert_eq!(
        (&*postponed.plugin, &*postponed.message),
        ("guard", "the press is running")
    );

    let begun = Instant::now();
    rig.host.postpone(None);
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["press_1_1_c2 Running"]);
    let elapsed = begun.elapsed();
    assert!(elapsed < DELAY + Duration::from_secs(1), "{elapsed:?}");
    assert_eq!(rig.host.begun_updates().len(), 1);
    let questions = rig.host.postponement_queries();
    let [first, .., last] = questions.as_slice() else {
        panic!("{questions:?}");
    };
    assert_eq!(first, last);
    let services = first.services.iter().map(ToString::to_string);
    assert_eq!(services.collect::<Vec<_>>(), ["press"]);
    let commit = |commit: &Option<model::Commit>| commit.as_ref().map(ToString::to_string);
    assert_eq!(
        (commit(&first.running_commit), commit(&first.target_commit)),
        (Some("c1".to_owned()), Some("c2".to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn force_and_the_first_start_of_an_app_are_not_asked_about() {
    let rig = managed_rig();
    rig.cloud_says(press("press:1", "c1")).await;
    rig.settled().await;
    assert_eq!(rig.host.postponement_queries(), []);
    assert_eq!(rig.host.begun_updates(), []);

    let rig = held().await;
    rig.cloud_says(press("press:2", "c2")).await;
    until_postponed(&rig).await;
    rig.reconciler.trigger(true, false);
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["press_1_1_c2 Running"]);
    // The update that waited has begun.
    assert!(!rig.host.begun_updates().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_update_that_may_go_on_begins_only_once_its_locks_are_free() {
    let rig = managed_rig();
    rig.cloud_says(press("press:1", "c1")).await;
    rig.settled().await;
    let lock = rig.lock_path("press");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    fs::write(&lock, "").unwrap();
    rig.cloud_says(press("press:2", "c2")).await;
    rig.until(|status| status.update_failed).await;
    assert!(!rig.host.postponement_queries().is_empty());
    assert_eq!(rig.host.begun_updates(), []);
    fs::remove_file(&lock).unwrap();
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["press_1_1_c2 Running"]);
    assert_eq!(rig.host.begun_updates().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_developer_in_local_mode_decides_alone() {
    let rig = rig();
    rig.set(press("press:1", "c1").json()).await;
    rig.settled().await;
    rig.set(press("press:2", "c2").json()).await;
    rig.settled().await;
    assert_eq!(rig.host.postponement_queries(), []);
}

#[tokio::test(start_paused = true)]
async fn an_update_is_asked_about_once_and_not_for_each_of_its_services() {
    let rig = managed_rig();
    let both = |image: &str, commit: &str| {
        let target = target().service("press", image).service("oven", image);
        target.commit(commit)
    };
    rig.cloud_says(both("food:1", "c1")).await;
    rig.settled().await;
    rig.cloud_says(both("food:2", "c2")).await;
    rig.settled().await;
    let questions = rig.host.postponement_queries();
    assert_eq!(questions.len(), 1, "{questions:?}");
    assert_eq!(questions[0].services.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_update_that_has_begun_is_not_asked_about_again() {
    let rig = managed_rig();
    let labels = json!({ "io.platform.update.strategy": "kill-then-download" });
    let press = |image: &str, commit: &str| {
        let target = target().service_with("press", image, json!({ "labels": labels }));
        target.service("oven", "oven:1").commit(commit)
    };
    rig.cloud_says(press("press:1", "c1")).await;
    rig.settled().await;
    rig.cloud_says(press("press:2", "c2")).await;
    rig.settled().await;
    // Its service is gone before the image is there.
    let calls = rig.engine.calls();
    let place = |call: &str| calls.iter().position(|it| it == call);
    assert!(place("remove press") < place("pull press:2"), "{calls:?}");
    let questions = rig.host.postponement_queries();
    assert_eq!(questions.len(), 1, "{calls:?} {questions:#?}");
}
