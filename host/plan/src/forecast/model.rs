//! A device on which every step succeeds at once.

use model::{
    BootId, ContainerId, ContainerState, CurrentRelease, CurrentService, EngineImageId, EngineKind,
    HostPart, Image, ImageRef,
};
use strum::VariantArray;

use crate::current::{CurrentComponent, CurrentState, OsAttempt, OsPhase, OsVerdict};
use crate::placement::is_same_image;
use crate::step::{LockedStep, StartService, Step};
use crate::subject::Subject;

/// The prefix of the ids of containers that do not exist yet.
pub(super) const FORESEEN: &str = "foreseen-";

pub(super) struct DeviceModel {
    pub(super) state: CurrentState,
    numbered: u64,
    boots: u64,
}

impl DeviceModel {
    /// Returns a model of the current state, with nothing under way and nothing held back.
    pub(super) fn from_state(current: &CurrentState) -> Self {
        let mut state = current.clone();
        state.busy.clear();
        // Parts of the host that cannot be configured are not tried by a step.
        state
            .failed
            .retain(|subject, _| matches!(subject, Subject::Host(_)));
        for &part in HostPart::VARIANTS {
            if state.host.differs.contains(&part) {
                state.failed.remove(&Subject::Host(part));
            }
        }
        // An installation that is under way is shown as a step in flight.
        if let Some(status) = &mut state.os.status {
            status.installing = None;
        }
        if matches!(state.os.verdict, OsVerdict::Pending { .. }) {
            state.os.verdict = OsVerdict::Healthy;
        }
        DeviceModel {
            state,
            numbered: 0,
            boots: 0,
        }
    }

    /// Completes all removals by engines; returns `false` if there were none.
    pub(super) fn end_removals(&mut self) -> bool {
        let services = &mut self.state.services;
        let before = services.len();
        services.retain(|container| container.state != ContainerState::Removing);
        services.len() < before
    }

    /// Ends all purges, so that their apps are created again; returns `false` if there were none,
    /// or if an engine may still hold some of the data.
    pub(super) fn end_purges(&mut self) -> bool {
        let purges = self.state.all_answer() && !self.state.purged.is_empty();
        if purges {
            self.state.purged.clear();
        }
        purges
    }

    /// Applies a step that needs no locks; returns `false` if it cannot be applied.
    pub(super) fn take(&mut self, step: Step) -> bool {
        let state = &mut self.state;
        match step {
            Step::PullImage { image, engine, .. } => {
                let Some(engine) = engine.or_else(|| self.default_engine()) else {
                    return false;
                };
                return self.pull(image, engine);
            }
            Step::RemoveImage { image, .. } => self.remove_image(&image),
            Step::CreateComponent { engine, component } => {
                let made = CurrentComponent {
                    engine,
                    name: component.engine_name().to_owned(),
                    app: None,
                    digest: Some(component.digest().to_owned()),
                };
                state.components_mut(component.kind()).push(made);
            }
            Step::RemoveComponent {
                engine, kind, name, ..
            } => {
                let held = state.components_mut(kind);
                held.retain(|held| held.engine != engine || held.name != name);
            }
            Step::RemoveDead { container, .. } => self.remove(&container.id),
            Step::StartExisting { container, .. } => {
                self.put(&container.id, ContainerState::Running);
                self.state.stopped.remove(&container.id);
            }
            Step::RecordCommit { app, commit } => {
                state.commits.insert(app, commit);
            }
            Step::ForgetCommit { app } => {
                state.commits.remove(&app);
            }
            Step::Configure { part, .. } => {
                state.host.differs.remove(&part);
                state.host.reboot_due = true;
            }
            Step::StageOs { os } => {
                if let Some(status) = &mut state.os.status {
                    status.staged = Some(os.version);
                }
            }
            Step::CommitOs { .. } => state.os.attempt = None,
            Step::RollBackOs { version } => {
                let runs = state
                    .os
                    .status
                    .as_ref()
                    .is_some_and(|os| os.running == version);
                state.os.attempt = runs.then(|| OsAttempt {
                    version,
                    boot: state.host.boot.clone(),
                    phase: OsPhase::RolledBack,
                });
            }
            Step::Reboot { activates, .. } => {
                if let Some(version) = activates {
                    let boot = state.host.boot.clone();
                    let phase = OsPhase::Activated;
                    if let Some(status) = &mut state.os.status {
                        let before = std::mem::replace(&mut status.running, version.clone());
                        status.staged = Some(before);
                    }
                    state.os.attempt = Some(OsAttempt {
                        version,
                        boot,
                        phase,
                    });
                } else {
                    // The previous version runs again.
                    let is_over = |attempt: &OsAttempt| attempt.phase == OsPhase::RolledBack;
                    state.os.attempt = state.os.attempt.take().filter(|it| !is_over(it));
                }
                self.boots += 1;
                state.host.boot = BootId::try_from(format!("{FORESEEN}{}", self.boots)).ok();
                state.host.reboot_due = false;
            }
            Step::UnderLocks(_) | Step::ReleaseLocks { .. } => {}
        }
        true
    }

    /// Applies a step that disturbs a service; returns `false` if it cannot be applied.
    pub(super) fn under_locks(&mut self, step: LockedStep) -> bool {
        match step {
            LockedStep::Stop { container, .. } => {
                self.put(&container.id, ContainerState::Exited);
                self.state.stopped.insert(container.id);
            }
            LockedStep::Kill { container, .. } => self.remove(&container.id),
            LockedStep::Rename { container, name } => {
                for held in &mut self.state.services {
                    if held.container == container.id {
                        held.name.clone_from(&name);
                    }
                }
            }
            LockedStep::RemoveImage { image, .. } => self.remove_image(&image),
            LockedStep::HandOver { old, start, .. } => {
                self.remove(&old.id);
                return self.make(*start);
            }
            LockedStep::Start(start) => return self.make(*start),
        }
        true
    }

    fn default_engine(&self) -> Option<EngineKind> {
        let first = self.state.engines.keys().next().copied();
        self.state.default_engine.or(first)
    }

    fn pull(&mut self, image: ImageRef, engine: EngineKind) -> bool {
        // Its real id is known only once it exists.
        let Ok(id) = EngineImageId::try_from(format!("{FORESEEN}{}", self.state.images.len()))
        else {
            return false;
        };
        for held in &mut self.state.images {
            held.references.retain(|reference| *reference != image);
        }
        self.state.recorded_images.insert(image.clone());
        self.state.images.push(Image {
            engine,
            id,
            references: vec![image],
            size: 0,
        });
        true
    }

    fn remove_image(&mut self, image: &ImageRef) {
        for held in &mut self.state.images {
            held.references
                .retain(|reference| !is_same_image(reference, image));
        }
        self.state.images.retain(|held| !held.references.is_empty());
        self.state.recorded_images.remove(image);
    }

    fn put(&mut self, container: &ContainerId, becomes: ContainerState) {
        for held in &mut self.state.services {
            if held.container == *container {
                held.state = becomes;
            }
        }
    }

    fn remove(&mut self, container: &ContainerId) {
        self.state
            .services
            .retain(|held| held.container != *container);
    }

    fn make(&mut self, start: StartService) -> bool {
        let service = start.service;
        self.numbered += 1;
        let Ok(id) = ContainerId::try_from(format!("{FORESEEN}{}", self.numbered)) else {
            return false;
        };
        if let Some(host) = start.network_container {
            self.state.network_containers.insert(id.clone(), host);
        }
        let newest = self.state.services.iter().map(|held| held.created_at_ms);
        let created_at_ms = newest.max().unwrap_or(0).saturating_add(1);
        self.state.services.push(CurrentService {
            engine: start.engine,
            container: id,
            name: service.container_name(),
            image: service.config.image.to_string(),
            engine_image: start.image,
            state: if service.running && start.starts_after.is_none() {
                ContainerState::Running
            } else {
                ContainerState::Created
            },
            exit_code: None,
            health: None,
            created_at_ms,
            digest: Some(service.digest.clone()),
            stop_grace: std::time::Duration::ZERO,
            waits_in_boot: start.starts_after,
            depends_on: service.depends_on.iter().cloned().collect(),
            app_id: service.app_id,
            id: service.id,
            device: None,
            release: Some(CurrentRelease {
                image_id: service.image_id,
                id: service.release,
                commit: Some(service.commit),
            }),
            key: service.key,
        });
        true
    }
}
