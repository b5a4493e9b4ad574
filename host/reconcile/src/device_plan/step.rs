//! One step of the device's plan.

use device_types::plan::{BlockReason, Blocker, ImageUser, PlanStep, StepKind, StepState};
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
        let mut plan_step = PlanStep {
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
            os_version: None,
            progress: None,
            users: Vec::new(),
            blocked_by: blockers.into_iter().map(BlockReason::from).collect(),
        };
        match &step.step {
            AnyStep::Free(free) => {
                put_free(&mut plan_step, free);
                if let Step::PullImage { image, .. } = free {
                    plan_step.progress = self.progress.get(image).copied();
                }
                if let Step::StageOs { .. } = free {
                    plan_step.progress = self.os_progress;
                }
            }
            AnyStep::Locked(service, locked) => {
                plan_step.service = Some(service.service.clone());
                put_locked(&mut plan_step, locked);
            }
        }
        plan_step
    }
}

fn put_free(plan_step: &mut PlanStep, step: &Step) {
    match step {
        Step::PullImage {
            image,
            engine,
            users,
        } => {
            put_image(plan_step, StepKind::PullImage, image, *engine);
            let users = users.iter().map(|user| ImageUser {
                app_id: user.app_id,
                service: user.service.service.clone(),
            });
            plan_step.users = users.collect();
        }
        Step::RemoveImage { image, engine } => {
            put_image(plan_step, StepKind::RemoveImage, image, *engine);
        }
        Step::CreateComponent { engine, component } => {
            plan_step.kind = match component.kind() {
                ComponentKind::Volume => StepKind::CreateVolume,
                ComponentKind::Network => StepKind::CreateNetwork,
            };
            plan_step.engine = Some(*engine);
            plan_step.name = Some(component.engine_name().to_owned());
        }
        Step::RemoveComponent {
            engine, kind, name, ..
        } => {
            plan_step.kind = match kind {
                ComponentKind::Volume => StepKind::RemoveVolume,
                ComponentKind::Network => StepKind::RemoveNetwork,
            };
            plan_step.engine = Some(*engine);
            plan_step.name = Some(name.clone());
        }
        Step::RemoveDead { service, container } => {
            plan_step.service = Some(service.service.clone());
            put_container(plan_step, StepKind::RemoveService, container);
        }
        Step::StartExisting {
            service, container, ..
        } => {
            plan_step.service = Some(service.service.clone());
            put_container(plan_step, StepKind::StartService, container);
        }
        Step::Configure { part, .. } => {
            plan_step.kind = StepKind::ConfigureHost;
            plan_step.name = Some(part.to_string());
        }
        Step::StageOs { os } => {
            plan_step.kind = StepKind::StageOs;
            plan_step.os_version = Some(os.version.clone());
        }
        Step::CommitOs { version } => {
            plan_step.kind = StepKind::CommitOs;
            plan_step.os_version = Some(version.clone());
        }
        Step::RollBackOs { version } => {
            plan_step.kind = StepKind::RollBackOs;
            plan_step.os_version = Some(version.clone());
        }
        Step::Reboot { activates, .. } => {
            plan_step.kind = StepKind::Reboot;
            plan_step.os_version.clone_from(activates);
        }
        Step::RecordCommit { commit, .. } => plan_step.commit = Some(commit.clone()),
        // The other steps concern the locks, which are listed with each step that needs them.
        Step::ForgetCommit { .. } | Step::UnderLocks(_) | Step::ReleaseLocks { .. } => {
            plan_step.kind = StepKind::ForgetRelease;
        }
    }
}

fn put_locked(plan_step: &mut PlanStep, step: &LockedStep) {
    match step {
        LockedStep::Stop { container, .. } => {
            put_container(plan_step, StepKind::StopService, container);
        }
        LockedStep::Kill { container, .. } => {
            put_container(plan_step, StepKind::RemoveService, container);
        }
        LockedStep::Rename { container, name } => {
            put_container(plan_step, StepKind::RenameService, container);
            plan_step.name = Some(name.clone());
        }
        LockedStep::RemoveImage { engine, image } => {
            put_image(plan_step, StepKind::RemoveImage, image, Some(*engine));
        }
        LockedStep::HandOver { old, start, .. } => {
            put_start(plan_step, start);
            put_container(plan_step, StepKind::HandOverService, old);
        }
        LockedStep::Start(start) => put_start(plan_step, start),
    }
}

fn put_start(plan_step: &mut PlanStep, start: &StartService) {
    let kind = if start.service.running && start.starts_after.is_none() {
        StepKind::StartService
    } else {
        StepKind::CreateService
    };
    put_image(
        plan_step,
        kind,
        &start.service.config.image,
        Some(start.engine),
    );
}

fn put_image(
    plan_step: &mut PlanStep,
    kind: StepKind,
    image: &ImageRef,
    engine: Option<EngineKind>,
) {
    plan_step.kind = kind;
    plan_step.image = Some(image.clone());
    plan_step.engine = engine;
}

fn put_container(plan_step: &mut PlanStep, kind: StepKind, container: &ContainerRef) {
    plan_step.kind = kind;
    plan_step.engine = Some(container.engine);
    if !plan::is_foreseen(&container.id) {
        plan_step.container_id = Some(container.id.clone());
    }
}
