//! Releases that must be healthy (docs/spec/device.md#release-health).

use std::time::Duration;

use device_types::Event;
use device_types::event::ReleaseUnhealthy;
use device_types::plan::Blocker;
use model::ContainerHealth::{Healthy, Starting, Unhealthy};
use model::{AppStatus, RejectedRelease};
use reconcile::ReleaseVerdict;
use tokio::time::Instant;

use crate::rig::{DEADLINE, Rig, Target, managed_rig, rig, target};

/// The time in which releases must become healthy.
const TIME: Duration = Duration::from_secs(60);
const OLD: &str = "press_1_1_c1 Running";
const NEW: &str = "press_1_1_c2 Running";

fn press(number: u32) -> Target {
    let target = target().service("press", &format!("press:{number}"));
    let target = target.commit(&format!("c{number}"));
    target.config("SUPERVISOR_UPDATE_HEALTH_TIME", "60000")
}

/// Like [`press`], without the variable.
fn unwatched(number: u32) -> Target {
    let target = target().service("press", &format!("press:{number}"));
    target.commit(&format!("c{number}"))
}

/// Returns what blocks the app's release, according to `GET /v3/plan`.
async fn blocker(rig: &Rig) -> Option<(Blocker, String)> {
    let plan = rig.reconciler.plan().await.unwrap();
    let mut blocked = plan.unplanned.into_iter().flat_map(|it| it.blocked_by);
    blocked.next().map(|blocked| (blocked.by, blocked.message))
}

/// Waits until no release is on trial any more.
async fn until_judged(rig: &Rig) {
    let judged = async {
        loop {
            rig.settled().await;
            match blocker(rig).await {
                Some((Blocker::ReleaseOnTrial { .. }, _)) => {}
                _ => return,
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(DEADLINE, judged).await.unwrap();
}

/// Returns a device on which release c1 is healthy.
async fn running() -> Rig {
    let rig = managed_rig();
    rig.cloud_says(press(1)).await;
    until_judged(&rig).await;
    rig
}

fn app(rig: &Rig) -> AppStatus {
    let status = rig.reconciler.status();
    status.apps.values().next().unwrap().clone()
}

fn unhealthy(rig: &Rig) -> Vec<ReleaseUnhealthy> {
    let events = rig.events.lock().unwrap();
    let events = events.iter().filter_map(|(_, event)| match event {
        Event::ReleaseUnhealthy(unhealthy) => Some(unhealthy.clone()),
        _ => None,
    });
    events.collect()
}

/// Waits until release c1 runs again.
async fn until_back(rig: &Rig) -> RejectedRelease {
    rig.until(|status| {
        let mut apps = status.apps.values();
        !status.applying && apps.any(|app| app.rejected_release.is_some())
    })
    .await;
    assert_eq!(rig.engine.picture(), [OLD]);
    let app = app(rig);
    assert_eq!(app.commit.unwrap().as_str(), "c1");
    let rejected = app.rejected_release.unwrap();
    assert_eq!(rejected.commit.as_str(), "c2");
    rejected
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_its_checks_gives_way_to_the_last_healthy_one_and_is_not_tried_again()
{
    let mut rig = running().await;
    rig.engine.health_of("press:2", Starting);
    let begun = Instant::now();
    rig.cloud_says(press(2)).await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), [NEW]);
    let expected =
        "the release is on trial: the service `press` has not passed its health check yet";
    let shown = async {
        while blocker(&rig)
            .await
            .is_none_or(|(_, message)| message != expected)
        {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(TIME / 2, shown).await.unwrap();
    rig.engine.health_of("press:2", Unhealthy);
    let rejected = until_back(&rig).await;
    let took = begun.elapsed();
    assert!(took >= TIME && took < TIME * 2, "{took:?}");
    assert_eq!(
        rejected.reason,
        "the service `press` fails its health check"
    );
    // The image of the previous release was kept.
    let pulls = |rig: &Rig| {
        let calls = rig.engine.calls().into_iter();
        calls
            .filter(|call| call.starts_with("pull"))
            .collect::<Vec<_>>()
    };
    assert_eq!(pulls(&rig), ["pull press:1", "pull press:2"]);
    let events = unhealthy(&rig);
    let [event] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(
        (event.commit.as_str(), &event.message),
        ("c2", &rejected.reason)
    );
    assert_eq!(event.back_to.as_ref().unwrap().as_str(), "c1");
    let (blocker, message) = blocker(&rig).await.unwrap();
    assert!(matches!(blocker, Blocker::ReleaseUnhealthy { .. }));
    assert_eq!(
        message,
        "release c2 was not healthy, so the last healthy release runs in its place: \
         the service `press` fails its health check"
    );

    // Neither the next poll nor the next start tries it again.
    rig.cloud_says(press(2)).await;
    rig.settled().await;
    assert_eq!(until_back(&rig).await, rejected);
    rig.restart().await;
    assert_eq!(until_back(&rig).await, rejected);
    // Another release is unaffected.
    rig.cloud_says(press(3)).await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["press_1_1_c3 Running"]);
    assert_eq!(app(&rig).rejected_release, None);
    until_judged(&rig).await;
    // But the one that was not healthy is still not tried again.
    rig.cloud_says(press(2)).await;
    rig.settled().await;
    assert_eq!(rig.engine.picture(), ["press_1_1_c3 Running"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_becomes_healthy_in_time_stays_and_the_old_images_go_then() {
    let rig = running().await;
    rig.engine.health_of("press:2", Unhealthy);
    rig.cloud_says(press(2)).await;
    rig.settled().await;
    tokio::time::sleep(TIME / 2).await;
    assert!(rig.engine.held_names().contains(&"press:1".to_owned()));
    rig.engine.health_of("press:2", Healthy);
    until_judged(&rig).await;
    rig.settled().await;
    tokio::time::sleep(TIME * 2).await;
    assert_eq!(rig.engine.picture(), [NEW]);
    assert!(!rig.engine.held_names().contains(&"press:1".to_owned()));
    assert_eq!(unhealthy(&rig), []);
    // From now on it is the healthy one, whatever the result of its check.
    rig.engine.health_of("press:2", Unhealthy);
    tokio::time::sleep(TIME * 2).await;
    assert_eq!(rig.engine.picture(), [NEW]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_ends_is_not_healthy_and_one_that_has_done_its_work_is() {
    let rig = running().await;
    rig.cloud_says(press(2)).await;
    rig.settled().await;
    rig.engine.end_with("press", 3);
    let rejected = until_back(&rig).await;
    assert_eq!(rejected.reason, "the service `press` has ended with code 3");

    rig.cloud_says(press(3)).await;
    rig.settled().await;
    rig.engine.end_with("press", 0);
    until_judged(&rig).await;
    tokio::time::sleep(TIME * 2).await;
    assert_eq!(rig.engine.picture(), ["press_1_1_c3 Exited"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_started_is_not_healthy() {
    let rig = running().await;
    rig.engine.fail("start press", 1000);
    rig.cloud_says(press(2)).await;
    rig.until(|status| status.update_failed).await;
    rig.eventually("a start failed", || {
        rig.engine.calls().iter().any(|call| call == "start press")
    })
    .await;
    rig.until(|status| {
        let mut apps = status.apps.values();
        apps.any(|app| app.rejected_release.is_some())
    })
    .await;
    rig.engine.fail("start press", 0);
    until_back(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_download_takes_nothing_from_the_time_of_a_release() {
    let rig = managed_rig();
    let both = |number: u32, image: &str| {
        let target = press(number);
        target.service_with(
            "oven",
            image,
            serde_json::json!({
                "labels": { "io.platform.update.strategy": "delete-then-download" },
            }),
        )
    };
    rig.cloud_says(both(1, "oven:1")).await;
    until_judged(&rig).await;
    rig.engine.hold("pull oven:2");
    rig.cloud_says(both(2, "oven:2")).await;
    rig.eventually("pulled", || rig.engine.waiting() == 1).await;
    tokio::time::sleep(TIME * 5).await;
    rig.engine.let_go("pull oven:2");
    until_judged(&rig).await;
    assert_eq!(unhealthy(&rig), []);
}

#[tokio::test(start_paused = true)]
async fn without_the_variable_and_without_plugins_every_release_counts_as_healthy() {
    let rig = managed_rig();
    rig.engine.health_of("press:2", Unhealthy);
    rig.cloud_says(unwatched(1)).await;
    rig.settled().await;
    rig.cloud_says(unwatched(2)).await;
    rig.settled().await;
    assert_eq!(blocker(&rig).await, None);
    tokio::time::sleep(TIME * 20).await;
    assert_eq!(rig.engine.picture(), [NEW]);
    // It is the release to go back to once releases are judged.
    rig.engine.health_of("press:3", Unhealthy);
    rig.cloud_says(press(3)).await;
    rig.until(|status| {
        let mut apps = status.apps.values();
        !status.applying && apps.any(|app| app.rejected_release.is_some())
    })
    .await;
    assert_eq!(rig.engine.picture(), [NEW]);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_refuses_a_release_at_once() {
    let rig = running().await;
    rig.host.judge(ReleaseVerdict::Unhealthy {
        reason: "the plugin `guard` finds it unhealthy: the press does not move".to_owned(),
    });
    let begun = Instant::now();
    rig.cloud_says(unwatched(2)).await;
    let rejected = until_back(&rig).await;
    assert!(begun.elapsed() < TIME, "{:?}", begun.elapsed());
    assert_eq!(
        rejected.reason,
        "the plugin `guard` finds it unhealthy: the press does not move"
    );
    let judged = rig.host.judged();
    let [release] = judged.as_slice() else {
        panic!("{judged:?}");
    };
    assert_eq!(release.commit.as_str(), "c2");
    let services = release.services.iter().map(ToString::to_string);
    assert_eq!(services.collect::<Vec<_>>(), ["press"]);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_cannot_say_is_asked_again_until_the_time_is_over() {
    let rig = running().await;
    rig.host.judge(ReleaseVerdict::NotYet {
        reason: "the plugin `guard` has not found it healthy: the press warms up".to_owned(),
        delay: Duration::from_secs(10),
    });
    rig.cloud_says(press(2)).await;
    let rejected = until_back(&rig).await;
    assert_eq!(
        rejected.reason,
        "the plugin `guard` has not found it healthy: the press warms up"
    );
    let questions = rig.host.judged().len();
    assert!((4..=6).contains(&questions), "{questions}");

    rig.cloud_says(press(3)).await;
    rig.eventually("asked", || rig.host.judged().len() > questions)
        .await;
    rig.host.judge(ReleaseVerdict::Healthy);
    until_judged(&rig).await;
    assert_eq!(rig.engine.picture(), ["press_1_1_c3 Running"]);
}

#[tokio::test(start_paused = true)]
async fn force_tries_a_release_again() {
    let rig = running().await;
    rig.engine.health_of("press:2", Unhealthy);
    rig.cloud_says(press(2)).await;
    until_back(&rig).await;
    rig.engine.health_of("press:2", Healthy);
    rig.reconciler.trigger(true, false);
    rig.until(|status| {
        let mut apps = status.apps.values();
        !status.applying && apps.all(|app| app.rejected_release.is_none())
    })
    .await;
    until_judged(&rig).await;
    assert_eq!(rig.engine.picture(), [NEW]);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_takes_the_supervisor_down_again_and_again_is_not_healthy() {
    let mut rig = running().await;
    rig.engine.health_of("press:2", Starting);
    rig.cloud_says(press(2)).await;
    for _ in 0..4 {
        rig.settled().await;
        assert_eq!(rig.engine.picture(), [NEW]);
        // The record of the trial is stored by now.
        tokio::time::sleep(Duration::from_secs(5)).await;
        rig.restart_after_a_kill().await;
    }
    let rejected = until_back(&rig).await;
    assert_eq!(
        rejected.reason,
        "the supervisor has started 4 times since its services began to run"
    );
}

#[tokio::test(start_paused = true)]
async fn a_first_release_that_is_not_healthy_stays_since_there_is_no_other() {
    let rig = managed_rig();
    rig.engine.health_of("press:1", Unhealthy);
    rig.cloud_says(press(1)).await;
    rig.settled().await;
    tokio::time::sleep(TIME * 5).await;
    assert_eq!(rig.engine.picture(), [OLD]);
    let events = unhealthy(&rig);
    let [event] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(event.back_to, None);
    rig.engine.health_of("press:1", Healthy);
    until_judged(&rig).await;
    assert_eq!(blocker(&rig).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_developer_in_local_mode_decides_alone_about_health() {
    let rig = rig();
    rig.host.judge(ReleaseVerdict::Unhealthy {
        reason: "no".to_owned(),
    });
    for number in [1, 2] {
        rig.set(press(number).json()).await;
        rig.settled().await;
    }
    tokio::time::sleep(TIME * 5).await;
    assert_eq!(rig.engine.picture(), [NEW]);
    assert_eq!(rig.host.judged(), []);
}
