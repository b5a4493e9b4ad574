//! One step of the device's plan.

use device_types::plan::{Blocked, Blocker, ImageUser, PlanStep, StepKind, StepState};
use model::{EngineKind, ImageRef};
use plan::{AnyStep, ComponentKind, ContainerRef, ForecastStep, LockedStep, StartService, Step};

use super::LoopSnapshot;

impl LoopSnapshot {
    pub(super) fn describe(
        &self,
        number: usize,
        step: &ForecastStep,
        blockers: Vec<Blocker>,
    ) -> PlanStep {
        let mut shown = PlanStep {
            number,
            stage: step.stage,
            kind: StepKind::RecordRelease,
            state: match (step.in_flight, blockers.is_empty()) {
                (true, _) => StepState::Running,
                (false, true) => StepState::Ready,
                (false, false) => StepState::Blocked,
            },
            reason: step.reason,
            needs_locks: matches!(
                step.step,
                AnyStep::Locked(..) | AnyStep::Free(Step::Reboot { .. })
            ),
            app_id: step.app.as_ref().and_then(|app| self.app_id(app)),
            app_uuid: step.app.clone(),
            service: None,
            image: None,
            engine: None,
            container_id: None,
            name: None,
            commit: None,
            progress: None,
            users: Vec::new(),
            blocked_by: blockers.into_iter().map(Blocked::from).collect(),
        };
        match &step.step {
            AnyStep::Free(free) => {
                put_free(&mut shown, free);
                if let Step::PullImage { image, .. } = free {
                    shown.progress = self.progress.get(image).copied();
                }
            }
            AnyStep::Locked(service, locked) => {
                shown.service = Some(service.service.clone());
                put_locked(&mut shown, locked);
            }
        }
        shown
    }
}

fn put_free(shown: &mut PlanStep, step: &Step) {
    match step {
        Step::PullImage {
            image,
            engine,
            users,
        } => {
            put_image(shown, StepKind::PullImage, image, *engine);
            let users = users.iter().map(|user| ImageUser {
                app_id: user.app_id,
                service: user.service.service.clone(),
            });
            shown.users = users.collect();
        }
        Step::RemoveImage { image, engine } => {
            put_image(shown, StepKind::RemoveImage, image, *engine);
        }
        Step::CreateComponent { engine, component } => {
            shown.kind = match component.kind() {
                ComponentKind::Volume => StepKind::CreateVolume,
                ComponentKind::Network => StepKind::CreateNetwork,
            };
            shown.engine = Some(*engine);
            shown.name = Some(component.engine_name().to_owned());
        }
        Step::RemoveComponent {
            engine, kind, name, ..
        } => {
            shown.kind = match kind {
                ComponentKind::Volume => StepKind::RemoveVolume,
                ComponentKind::Network => StepKind::RemoveNetwork,
            };
            shown.engine = Some(*engine);
            shown.name = Some(name.clone());
        }
        Step::RemoveDead { service, container } => {
            shown.service = Some(service.service.clone());
            put_container(shown, StepKind::RemoveService, container);
        }
        Step::StartExisting {
            service, container, ..
        } => {
            shown.service = Some(service.service.clone());
            put_container(shown, StepKind::StartService, container);
        }
        Step::Configure { part, .. } => {
            shown.kind = StepKind::ConfigureHost;
            shown.name = Some(part.to_string());
        }
        Step::Reboot { .. } => shown.kind = StepKind::Reboot,
        Step::RecordCommit { commit, .. } => shown.commit = Some(commit.clone()),
        // The others are about the locks, which each step that needs them says itself.
        Step::ForgetCommit { .. } | Step::UnderLocks(_) | Step::ReleaseLocks { .. } => {
            shown.kind = StepKind::ForgetRelease;
        }
    }
}

fn put_locked(shown: &mut PlanStep, step: &LockedStep) {
    match step {
        LockedStep::Stop { container, .. } => {
            put_container(shown, StepKind::StopService, container);
        }
        LockedStep::Kill { container, .. } => {
            put_container(shown, StepKind::RemoveService, container);
        }
        LockedStep::Rename { container, name } => {
            put_container(shown, StepKind::RenameService, container);
            shown.name = Some(name.clone());
        }
        LockedStep::RemoveImage { engine, image } => {
            put_image(shown, StepKind::RemoveImage, image, Some(*engine));
        }
        LockedStep::HandOver { old, start, .. } => {
            put_start(shown, start);
            put_container(shown, StepKind::HandOverService, old);
        }
        LockedStep::Start(start) => put_start(shown, start),
    }
}

fn put_start(shown: &mut PlanStep, start: &StartService) {
    let kind = if start.service.running && start.starts_after.is_none() {
        StepKind::StartService
    } else {
        StepKind::CreateService
    };
    put_image(shown, kind, &start.service.config.image, Some(start.engine));
}

fn put_image(shown: &mut PlanStep, kind: StepKind, image: &ImageRef, engine: Option<EngineKind>) {
    shown.kind = kind;
    shown.image = Some(image.clone());
    shown.engine = engine;
}

fn put_container(shown: &mut PlanStep, kind: StepKind, container: &ContainerRef) {
    shown.kind = kind;
    shown.engine = Some(container.engine);
    if !plan::is_foreseen(&container.id) {
        shown.container_id = Some(container.id.clone());
    }
}
