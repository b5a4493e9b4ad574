//! What is foreseen, and what is said to hold it up.

use std::fs;

use plan::{Deed, LockedStep, Step};
use reconcile::{Blocker, Mood, Outlook};

use crate::rig::{managed_rig, rig, target};

/// The steps, a line each.
fn picture(outlook: &Outlook) -> Vec<String> {
    let steps = outlook.steps.iter().map(|step| {
        let what = match &step.step.deed {
            Deed::Free(Step::PullImage { image, .. }) => format!("pull {image}"),
            Deed::Free(Step::RecordCommit { .. }) => "record".to_owned(),
            Deed::Free(other) => other.to_string(),
            Deed::Locked(service, LockedStep::Kill { .. }) => format!("kill {}", service.service),
            Deed::Locked(service, LockedStep::Start(_)) => format!("start {}", service.service),
            Deed::Locked(service, other) => format!("{}: {other:?}", service.service),
        };
        let begun = if step.step.in_flight { " begun" } else { "" };
        let blockers: Vec<_> = step.blocked_by.iter().map(name).collect();
        format!("{what}{begun} [{}]", blockers.join(", "))
    });
    steps.collect()
}

fn name(blocker: &Blocker) -> String {
    match blocker {
        Blocker::Image(image) => format!("image {image}"),
        Blocker::Service(service) => format!("service {service}"),
        Blocker::Component(name) => format!("component {name}"),
        Blocker::BackOff { failures, .. } => format!("back-off after {failures}"),
        Blocker::Lock { service, .. } => format!("lock of {service}"),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_download_a_users_lock_and_a_back_off_are_said_to_hold_an_update_up() {
    let rig = rig();
    let services = |web: &str| {
        let target = target().service("web", web).service("db", "db:1");
        target.without_volumes().json()
    };
    rig.set(services("web:1")).await;
    rig.settled().await;
    let outlook = rig.reconciler.outlook().await.unwrap();
    assert_eq!((outlook.mood, outlook.local_mode), (Mood::Settled, true));
    assert_eq!((outlook.steps, outlook.unplanned), (vec![], vec![]));

    fs::write(rig.lock_path("db"), "").unwrap();
    rig.engine.hold("pull web:2");
    rig.set(services("web:2")).await;
    rig.eventually("a pull", || rig.engine.waiting() == 1).await;
    let calls = rig.engine.calls();
    let outlook = rig.reconciler.outlook().await.unwrap();
    assert_eq!(outlook.mood, Mood::Applying);
    assert_eq!(
        picture(&outlook),
        [
            "pull web:2 begun []",
            "kill web [image web:2, lock of db]",
            "start web [image web:2, lock of db]",
        ]
    );
    assert!(outlook.steps[0].progress.is_some());
    assert_eq!(rig.engine.calls(), calls, "it asked an engine");

    rig.engine.let_go("pull web:2");
    rig.until(|status| status.update_failed).await;
    let outlook = rig.reconciler.outlook().await.unwrap();
    assert_eq!(
        picture(&outlook),
        [
            "kill web [lock of db, back-off after 1]",
            "start web [lock of db, back-off after 1]",
        ]
    );
    fs::remove_file(rig.lock_path("db")).unwrap();
    rig.settled().await;
    let outlook = rig.reconciler.outlook().await.unwrap();
    assert_eq!(outlook.mood, Mood::Settled);
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_foreseen_with_its_back_off_and_what_comes_after_it() {
    let rig = rig();
    let wanted = target()
        .without_volumes()
        .service("web", "missing:1")
        .service("db", "db:1");
    rig.set(wanted.json()).await;
    rig.until(|status| status.update_failed && status.images.iter().any(|i| i.engine_id.is_some()))
        .await;
    let outlook = rig.reconciler.outlook().await.unwrap();
    let lines = picture(&outlook);
    let starts = |what: &str| lines.iter().find(|line| line.starts_with(what));
    assert!(
        starts("pull missing:1").is_some_and(|line| line.contains("back-off after")),
        "{lines:?}"
    );
    assert_eq!(
        starts("start web").map(String::as_str),
        Some("start web [image missing:1]"),
        "{lines:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_silent_and_a_missing_target_leave_nothing_to_foresee() {
    let rig = rig();
    rig.engine.go_silent();
    rig.set(target().service("web", "web:1").json()).await;
    rig.until(|status| !status.waiting_on.is_empty()).await;
    let outlook = rig.reconciler.outlook().await.unwrap();
    assert_eq!((outlook.mood, outlook.steps), (Mood::Applying, vec![]));
    let blockers = outlook.unplanned.iter().flat_map(|left| &left.blocked_by);
    let blockers: Vec<_> = blockers.collect();
    assert!(
        !blockers.is_empty() && blockers.iter().all(|by| matches!(by, Blocker::Silent(..))),
        "{blockers:?}"
    );

    let fresh = managed_rig();
    let outlook = fresh.reconciler.outlook().await.unwrap();
    assert_eq!(outlook.mood, Mood::NoTarget);
}
