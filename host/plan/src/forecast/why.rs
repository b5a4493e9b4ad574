//! Why a step is taken, read from the state in which it is planned.

use std::collections::BTreeMap;

use model::{
    ContainerId, ContainerState, CurrentService, DesiredApp, DesiredService, DesiredState,
    NetworkMode, ServiceKey,
};

use super::Deed;
use crate::placement::{familiar, names};
use crate::{CurrentState, LockedStep, Step, Subject};

/// Why a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// The target has it and the device does not.
    Missing,
    /// The device has it and the target does not.
    NotInTarget,
    /// It is made from another image than the target's.
    ImageChanged,
    /// It is made with another configuration than the target's.
    ConfigurationChanged,
    /// Only the release's number or commit is another.
    ReleaseChanged,
    /// A volume or network that it uses is made anew.
    ComponentChanged,
    /// The service whose network it shares is made anew.
    NetworkChanged,
    /// There is a newer container of the same service.
    Duplicate,
    /// The engine failed to remove it.
    Dead,
    /// The target wants it to run.
    NotRunning,
    /// It is not to run: the target says so, or somebody stopped it over the API.
    NotToRun,
    /// Nothing uses it any more.
    Unused,
    /// Room is made for what is downloaded next.
    MakesRoom,
    /// Somebody asked for it to be made anew.
    Restart,
    /// Somebody asked for the app to be cleared.
    Purge,
    /// The release runs whole.
    Reached,
    /// What was done before takes effect with it.
    TakesEffect,
}

/// Why things went that have to come back.
#[derive(Debug, Default)]
pub(super) struct Causes(BTreeMap<Subject, Why>);

impl Causes {
    pub(super) fn of(&mut self, deed: &Deed, state: &CurrentState, desired: &DesiredState) -> Why {
        match deed {
            Deed::Locked(service, step) => self.of_locked(service, step, state, desired),
            Deed::Free(step) => self.of_free(step, state, desired),
        }
    }

    fn of_free(&mut self, step: &Step, state: &CurrentState, desired: &DesiredState) -> Why {
        match step {
            Step::PullImage { .. } => Why::Missing,
            Step::RemoveImage { .. } => Why::Unused,
            Step::CreateVolume { .. } | Step::CreateNetwork { .. } => self.came_of(&step.subject()),
            Step::RemoveVolume { name, .. } => {
                let mut held = state.volumes.iter();
                let owner = held.find(|held| held.name == *name);
                let owner = owner.and_then(|held| held.app.as_ref());
                let wanted = |app: &DesiredApp| {
                    let mut volumes = app.volumes.values();
                    volumes.any(|volume| volume.engine_name == *name)
                };
                let why = of_component(owner, wanted, state, desired);
                self.went(step.subject(), why)
            }
            Step::RemoveNetwork { name, .. } => {
                let mut held = state.networks.iter();
                let owner = held.find(|held| held.name == *name);
                let owner = owner.and_then(|held| held.app.as_ref());
                let wanted = |app: &DesiredApp| {
                    let mut networks = app.networks.values();
                    networks.any(|network| network.engine_name == *name)
                };
                let why = of_component(owner, wanted, state, desired);
                self.went(step.subject(), why)
            }
            Step::RemoveDead { .. } => Why::Dead,
            Step::StartExisting { .. } => Why::NotRunning,
            Step::RecordCommit { .. } => Why::Reached,
            Step::ForgetCommit { .. } => Why::NotInTarget,
            Step::Configure { .. } => Why::ConfigurationChanged,
            Step::Reboot { .. } => Why::TakesEffect,
            Step::UnderLocks(_) | Step::ReleaseLocks { .. } => Why::Unused,
        }
    }

    fn of_locked(
        &mut self,
        service: &ServiceKey,
        step: &LockedStep,
        state: &CurrentState,
        desired: &DesiredState,
    ) -> Why {
        let subject = Subject::Service(service.clone());
        match step {
            LockedStep::Stop { .. } => Why::NotToRun,
            LockedStep::Kill { container, .. } => {
                let why = of_kill(service, &container.id, state, desired);
                self.went(subject, why)
            }
            LockedStep::HandOver { old, .. } => of_kill(service, &old.id, state, desired),
            LockedStep::Rename { .. } => Why::ReleaseChanged,
            LockedStep::RemoveImage { .. } => Why::MakesRoom,
            LockedStep::Start(_) => self.came_of(&subject),
        }
    }

    fn went(&mut self, subject: Subject, why: Why) -> Why {
        self.0.insert(subject, why);
        why
    }

    fn came_of(&self, subject: &Subject) -> Why {
        self.0.get(subject).copied().unwrap_or(Why::Missing)
    }
}

fn of_component(
    owner: Option<&model::AppUuid>,
    wanted: impl Fn(&DesiredApp) -> bool,
    state: &CurrentState,
    desired: &DesiredState,
) -> Why {
    if owner.is_some_and(|app| state.purged.contains(app)) {
        return Why::Purge;
    }
    match desired.apps.values().any(wanted) {
        true => Why::ConfigurationChanged,
        false => Why::NotInTarget,
    }
}

/// Why `container` goes.
fn of_kill(
    service: &ServiceKey,
    container: &ContainerId,
    state: &CurrentState,
    desired: &DesiredState,
) -> Why {
    if state.purged.contains(&service.app) {
        return Why::Purge;
    }
    let app = desired.apps.get(&service.app);
    let Some(wanted) = app.and_then(|app| app.services.get(&service.service)) else {
        return Why::NotInTarget;
    };
    let mut services = state.services.iter();
    let Some(held) = services.find(|held| held.container == *container) else {
        return Why::NotInTarget;
    };
    if state
        .services
        .iter()
        .any(|other| succeeds(other, held, wanted))
    {
        Why::Duplicate
    } else if state.recreated.contains(container) {
        Why::Restart
    } else if has_other_image(held, wanted, state) {
        Why::ImageChanged
    } else if held.digest.as_ref() != Some(&wanted.digest) {
        Why::ConfigurationChanged
    } else if matches!(wanted.config.network_mode, NetworkMode::Service(_)) {
        Why::NetworkChanged
    } else {
        Why::ComponentChanged
    }
}

/// Whether `other` is the newer of two containers of one service.
fn succeeds(other: &CurrentService, held: &CurrentService, wanted: &DesiredService) -> bool {
    let gone = matches!(other.state, ContainerState::Dead | ContainerState::Removing);
    let name = wanted.container_name();
    let age = |c: &CurrentService| (c.created_at_ms, c.name == name, c.container.clone());
    !gone && other.key == held.key && age(other) > age(held)
}

fn has_other_image(held: &CurrentService, wanted: &DesiredService, state: &CurrentState) -> bool {
    let image = &wanted.config.image;
    let mut images = state.images.iter();
    let named = images.find(|found| found.engine == held.engine && names(found, image));
    match named {
        Some(named) => named.id != held.engine_image,
        None => familiar(&held.image) != familiar(image.as_str()),
    }
}
