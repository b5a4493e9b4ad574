//! Forecasts, and the reported blockers.

use std::fs;

use device_types::DevicePlan;
use device_types::plan::{Blocker, PlanState, StepKind, StepState};

use crate::rig::{managed_rig, rig, target};

/// Returns the steps, one line each.
fn picture(plan: &DevicePlan) -> Vec<String> {
    let steps = plan.steps.iter().map(|step| {
        let service = step.service.as_ref().map(ToString::to_string);
        let service = service.unwrap_or_default();
        let what = match step.kind {
            StepKind::PullImage => format!("pull {}", step.image.as_ref().unwrap()),
            StepKind::RecordRelease => "record".to_owned(),
            StepKind::RemoveService => format!("kill {service}"),
            StepKind::StartService => format!("start {service}"),
            other => format!("{other:?} {service}"),
        };
        let begun = if step.state == StepState::Running {
            " begun"
        } else {
            ""
        };
        let blockers: Vec<_> = step
            .blocked_by
            .iter()
            .map(|blocked| name(&blocked.by))
            .collect();
        format!("{what}{begun} [{}]", blockers.join(", "))
    });
    steps.collect()
}

fn name(blocker: &Blocker) -> String {
    match blocker {
        Blocker::Image { image } => format!("image {image}"),
        Blocker::Dependency { service } => format!("service {service}"),
        Blocker::Component { name } => format!("component {name}"),
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
    let plan = rig.reconciler.plan().await.unwrap();
    assert_eq!((plan.state, plan.local_mode), (PlanState::Settled, true));
    assert_eq!((plan.steps, plan.unplanned), (vec![], vec![]));

    fs::write(rig.lock_path("db"), "").unwrap();
    rig.engine.hold("pull web:2");
    rig.set(services("web:2")).await;
    rig.eventually("a pull", || rig.engine.waiting() == 1).await;
    let calls = rig.engine.calls();
    let plan = rig.reconciler.plan().await.unwrap();
    assert_eq!(plan.state, PlanState::Applying);
    assert_eq!(
        picture(&plan),
        [
            "pull web:2 begun []",
            "kill web [image web:2, lock of db]",
            "start web [image web:2, lock of db]",
        ]
    );
    assert!(plan.steps[0].progress.is_some());
    assert_eq!(rig.engine.calls(), calls, "it asked an engine");

    rig.engine.let_go("pull web:2");
    rig.until(|status| status.update_failed).await;
    let plan = rig.reconciler.plan().await.unwrap();
    assert_eq!(
        picture(&plan),
        [
            "kill web [lock of db, back-off after 1]",
            "start web [lock of db, back-off after 1]",
        ]
    );
    fs::remove_file(rig.lock_path("db")).unwrap();
    rig.settled().await;
    let plan = rig.reconciler.plan().await.unwrap();
    assert_eq!(plan.state, PlanState::Settled);
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_foreseen_with_its_back_off_and_what_comes_after_it() {
    let rig = rig();
    let desired = target()
        .without_volumes()
        .service("web", "missing:1")
        .service("db", "db:1");
    rig.set(desired.json()).await;
    rig.until(|status| status.update_failed && status.images.iter().any(|i| i.engine_id.is_some()))
        .await;
    let plan = rig.reconciler.plan().await.unwrap();
    let lines = picture(&plan);
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
    let plan = rig.reconciler.plan().await.unwrap();
    assert_eq!((plan.state, plan.steps), (PlanState::Applying, vec![]));
    let blockers = plan.unplanned.iter().flat_map(|left| &left.blocked_by);
    let blockers: Vec<_> = blockers.collect();
    assert!(
        !blockers.is_empty()
            && blockers
                .iter()
                .all(|it| matches!(it.by, Blocker::EngineSilent { .. })),
        "{blockers:?}"
    );

    let fresh = managed_rig();
    let plan = fresh.reconciler.plan().await.unwrap();
    assert_eq!(plan.state, PlanState::NoTarget);
}
