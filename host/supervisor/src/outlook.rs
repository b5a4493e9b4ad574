//! The reconciler's outlook in the API's words.

use api::{
    Blocked, Blocker, DevicePlan, ImageUser, Moment, PlanState, PlanStep, SignedTargets, StepKind,
    StepReason, StepState, Unplanned,
};
use plan::{ContainerRef, Deed, LockedStep, StartService, Step, Why};
use reconcile::{Mood, Outlook, OutlookStep, Signing};

pub(crate) fn shown(outlook: Outlook, signing: &Signing) -> DevicePlan {
    DevicePlan {
        state: match outlook.mood {
            Mood::Settled => PlanState::Settled,
            Mood::Applying => PlanState::Applying,
            Mood::Looking => PlanState::Looking,
            Mood::NoTarget => PlanState::NoTarget,
            Mood::LeavingLocalMode => PlanState::LeavingLocalMode,
        },
        local_mode: outlook.local_mode,
        steps: (1..).zip(&outlook.steps).map(|(n, s)| step(n, s)).collect(),
        unplanned: outlook.unplanned.iter().map(unplanned).collect(),
        cut_short: outlook.cut_short,
        signed_targets: signing.is_required.then(|| SignedTargets {
            refused: signing
                .refused
                .as_ref()
                .map(|refused| refused.reasons.clone()),
        }),
    }
}

fn step(number: usize, step: &OutlookStep) -> PlanStep {
    let foreseen = &step.step;
    let mut shown = PlanStep {
        number,
        stage: foreseen.stage,
        kind: StepKind::RecordRelease,
        state: match (foreseen.in_flight, step.blocked_by.is_empty()) {
            (true, _) => StepState::Running,
            (false, true) => StepState::Ready,
            (false, false) => StepState::Blocked,
        },
        reason: reason(foreseen.why),
        needs_locks: matches!(
            foreseen.deed,
            Deed::Locked(..) | Deed::Free(Step::Reboot { .. })
        ),
        app_id: step.app_id.map(|id| id.0),
        app_uuid: foreseen.app.as_ref().map(ToString::to_string),
        service: None,
        image: None,
        engine: None,
        container_id: None,
        name: None,
        commit: None,
        progress: step.progress,
        users: Vec::new(),
        blocked_by: step.blocked_by.iter().map(blocked).collect(),
    };
    match &foreseen.deed {
        Deed::Free(free) => put_free(&mut shown, free),
        Deed::Locked(service, locked) => {
            shown.service = Some(service.service.to_string());
            put_locked(&mut shown, locked);
        }
    }
    shown
}

fn put_free(shown: &mut PlanStep, step: &Step) {
    match step {
        Step::PullImage {
            image,
            engine,
            users,
        } => {
            shown.kind = StepKind::PullImage;
            shown.image = Some(image.to_string());
            shown.engine = *engine;
            let users = users.iter().map(|user| ImageUser {
                app_id: user.app_id.0,
                service: user.service.service.to_string(),
            });
            shown.users = users.collect();
        }
        Step::RemoveImage { image, engine } => {
            shown.kind = StepKind::RemoveImage;
            shown.image = Some(image.to_string());
            shown.engine = *engine;
        }
        Step::CreateVolume { engine, volume } => {
            shown.kind = StepKind::CreateVolume;
            shown.engine = Some(*engine);
            shown.name = Some(volume.engine_name.clone());
        }
        Step::RemoveVolume { engine, name } => {
            shown.kind = StepKind::RemoveVolume;
            shown.engine = Some(*engine);
            shown.name = Some(name.clone());
        }
        Step::CreateNetwork { engine, network } => {
            shown.kind = StepKind::CreateNetwork;
            shown.engine = Some(*engine);
            shown.name = Some(network.engine_name.clone());
        }
        Step::RemoveNetwork { engine, name } => {
            shown.kind = StepKind::RemoveNetwork;
            shown.engine = Some(*engine);
            shown.name = Some(name.clone());
        }
        Step::RemoveDead { service, container } => {
            shown.kind = StepKind::RemoveService;
            shown.service = Some(service.service.to_string());
            put_container(shown, container);
        }
        Step::StartExisting {
            service, container, ..
        } => {
            shown.kind = StepKind::StartService;
            shown.service = Some(service.service.to_string());
            put_container(shown, container);
        }
        Step::Configure { part, .. } => {
            shown.kind = StepKind::ConfigureHost;
            shown.name = Some(part.to_string());
        }
        Step::Reboot { .. } => shown.kind = StepKind::Reboot,
        Step::RecordCommit { commit, .. } => shown.commit = Some(commit.to_string()),
        // The others are about the locks, which each step that needs them says itself.
        Step::ForgetCommit { .. } | Step::UnderLocks(_) | Step::ReleaseLocks { .. } => {
            shown.kind = StepKind::ForgetRelease;
        }
    }
}

fn put_locked(shown: &mut PlanStep, step: &LockedStep) {
    match step {
        LockedStep::Stop { container, .. } => {
            shown.kind = StepKind::StopService;
            put_container(shown, container);
        }
        LockedStep::Kill { container, .. } => {
            shown.kind = StepKind::RemoveService;
            put_container(shown, container);
        }
        LockedStep::Rename { container, name } => {
            shown.kind = StepKind::RenameService;
            put_container(shown, container);
            shown.name = Some(name.clone());
        }
        LockedStep::RemoveImage { engine, image } => {
            shown.kind = StepKind::RemoveImage;
            shown.engine = Some(*engine);
            shown.image = Some(image.to_string());
        }
        LockedStep::HandOver { old, start, .. } => {
            put_start(shown, start);
            shown.kind = StepKind::HandOverService;
            put_container(shown, old);
        }
        LockedStep::Start(start) => put_start(shown, start),
    }
}

fn put_start(shown: &mut PlanStep, start: &StartService) {
    shown.kind = match start.service.running && start.starts_after.is_none() {
        true => StepKind::StartService,
        false => StepKind::CreateService,
    };
    shown.engine = Some(start.engine);
    shown.image = Some(start.service.config.image.to_string());
}

fn put_container(shown: &mut PlanStep, container: &ContainerRef) {
    shown.engine = Some(container.engine);
    if !plan::is_foreseen(&container.id) {
        shown.container_id = Some(container.id.to_string());
    }
}

fn reason(why: Why) -> StepReason {
    match why {
        Why::Missing => StepReason::Missing,
        Why::NotInTarget => StepReason::NotInTarget,
        Why::ImageChanged => StepReason::ImageChanged,
        Why::ConfigurationChanged => StepReason::ConfigurationChanged,
        Why::ReleaseChanged => StepReason::ReleaseChanged,
        Why::ComponentChanged => StepReason::ComponentChanged,
        Why::NetworkChanged => StepReason::NetworkChanged,
        Why::Duplicate => StepReason::Duplicate,
        Why::Dead => StepReason::Dead,
        Why::NotRunning => StepReason::NotRunning,
        Why::NotToRun => StepReason::NotToRun,
        Why::Unused => StepReason::Unused,
        Why::MakesRoom => StepReason::MakesRoom,
        Why::Restart => StepReason::Restart,
        Why::Purge => StepReason::Purge,
        Why::Reached => StepReason::Reached,
        Why::TakesEffect => StepReason::TakesEffect,
    }
}

fn unplanned(left: &reconcile::Unplanned) -> Unplanned {
    Unplanned {
        app_id: left.app.as_ref().map(|(id, _)| id.0),
        app_uuid: left.app.as_ref().map(|(_, uuid)| uuid.to_string()),
        service: left.service.as_ref().map(ToString::to_string),
        blocked_by: left.blocked_by.iter().map(blocked).collect(),
    }
}

fn blocked(by: &reconcile::Blocker) -> Blocked {
    use reconcile::Blocker as Cause;
    let (by, message) = match by {
        Cause::Image(image) => (
            Blocker::Image {
                image: image.to_string(),
            },
            format!("the image `{image}` is not there yet"),
        ),
        Cause::Service(service) => (
            Blocker::Dependency {
                service: service.to_string(),
            },
            format!("the service `{service}` is to be started before"),
        ),
        Cause::Component(name) => (
            Blocker::Component { name: name.clone() },
            format!("the volume or network `{name}` is to be made before"),
        ),
        Cause::Removal => (
            Blocker::Removal,
            "the engine is still removing an old container".to_owned(),
        ),
        Cause::EarlierSteps => (
            Blocker::EarlierSteps,
            "the steps of earlier stages come first".to_owned(),
        ),
        Cause::BackOff {
            until_ms,
            failures,
            reason,
        } => (
            Blocker::BackOff {
                until: Moment(*until_ms),
                failures: *failures,
            },
            format!("it is tried again later: {reason}"),
        ),
        // Not where the file is: the host's paths are nobody's business.
        Cause::Lock { app, service, .. } => (
            Blocker::Lock {
                app_id: app.0,
                service: service.to_string(),
            },
            format!("the service `{service}` holds its update lock"),
        ),
        Cause::Silent(engine, why) => (
            Blocker::EngineSilent { engine: *engine },
            format!("the {engine} engine does not answer: {why}"),
        ),
        Cause::NoEngine(engine) => (
            Blocker::EngineMissing { engine: *engine },
            format!("it needs the {engine} engine, which this device does not have"),
        ),
        Cause::GoingDown => (
            Blocker::GoingDown,
            "the host is about to go down".to_owned(),
        ),
        Cause::Reboot => (
            Blocker::Reboot,
            "it is started after the next reboot".to_owned(),
        ),
        Cause::RebootedInVain { times, what } => (
            Blocker::RebootedInVain { times: *times },
            format!("the device was rebooted {times} times for {what} without reaching its target"),
        ),
        Cause::NotOurs => (
            Blocker::NotOurs,
            "the app is the host's or the supervisor's own, which this supervisor does not run"
                .to_owned(),
        ),
        Cause::Rejected => (
            Blocker::ReleaseRejected,
            "the release was refused, so what runs of the app is left alone".to_owned(),
        ),
        Cause::LocalMode => (
            Blocker::LocalMode,
            "the device is in local mode, and the app is of the cloud's target".to_owned(),
        ),
        Cause::StoppedByUser => (
            Blocker::StoppedByUser,
            "it was stopped over the API, and stays so until it is started over it".to_owned(),
        ),
    };
    Blocked { by, message }
}
