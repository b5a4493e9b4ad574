//! What becomes of each container: kept, renamed, made anew or removed (docs/spec/device.md#order).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use device_types::plan::StepReason;
use model::{
    ContainerId, ContainerState, CurrentService, DesiredService, EngineKind, NetworkMode,
    ServiceName,
};

use crate::app::App;
use crate::components::ComponentState;
use crate::placement::familiar;
use crate::{CurrentState, Subject};

/// What becomes of the newest container of a service of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition<'a> {
    /// Its configuration matches the target. Its name, and whether it runs, may still differ.
    Keep(&'a CurrentService),
    /// It must be recreated, with the reason.
    Replace(&'a CurrentService, StepReason),
    /// There is no container.
    Missing,
}

/// A service of the target.
#[derive(Debug)]
pub(crate) struct ServicePlan<'a> {
    pub desired: &'a DesiredService,
    pub disposition: Disposition<'a>,
    /// Older containers of the same service.
    pub surplus: Vec<&'a CurrentService>,
    /// Whether the engine has not yet removed an old container, which may still own the name.
    pub fading: bool,
    /// Whether the kept container was stopped over the API, and stays stopped.
    pub held: bool,
}

/// The services of one app.
#[derive(Debug, Default)]
pub(crate) struct ServicePlans<'a> {
    pub wanted: BTreeMap<&'a ServiceName, ServicePlan<'a>>,
    /// Containers of services that the target does not have, by service.
    pub unwanted: BTreeMap<&'a ServiceName, Vec<&'a CurrentService>>,
    /// Containers that the engine failed to remove.
    pub dead: Vec<&'a CurrentService>,
    /// Containers that the engine is removing, of services that the target does not have.
    pub fading: Vec<&'a CurrentService>,
}

impl<'a> ServicePlan<'a> {
    /// The container that is kept.
    pub(crate) fn kept(&self) -> Option<&'a CurrentService> {
        match self.disposition {
            Disposition::Keep(container) => Some(container),
            Disposition::Replace(..) | Disposition::Missing => None,
        }
    }

    /// The kept container has another release in its name than the target.
    pub(crate) fn is_misnamed(&self) -> bool {
        self.kept()
            .is_some_and(|kept| kept.name != self.desired.container_name())
    }

    /// The kept container runs, or is about to, and should not.
    pub(crate) fn is_to_stop(&self) -> bool {
        let should_run = self.desired.running && !self.held;
        !should_run && self.kept().is_some_and(CurrentService::runs)
    }

    /// The kept container should run, and it is for the supervisor to start it: it never ran, or was
    /// stopped by us. A container that ended by itself is left to its restart policy.
    pub(crate) fn is_to_start(&self, current: &CurrentState) -> bool {
        let waits = |kept: &CurrentService| match kept.state {
            ContainerState::Created => true,
            ContainerState::Exited => current.stopped.contains(&kept.container),
            _ => false,
        };
        self.desired.running && !self.held && self.kept().is_some_and(waits)
    }

    /// Whether bringing this service to the target disturbs a container.
    pub(crate) fn disturbs(&self) -> bool {
        matches!(self.disposition, Disposition::Replace(..))
            || !self.surplus.is_empty()
            || self.is_misnamed()
            || self.is_to_stop()
    }
}

impl<'a> ServicePlans<'a> {
    /// Whether a container on `engine` is to be removed, or is being removed.
    pub(crate) fn has_leaving(&self, engine: EngineKind) -> bool {
        self.leaving().any(|container| container.engine == engine)
    }

    /// As [`Self::has_leaving`], for containers of other services than `service`; without those that
    /// failed to be removed, for a service that fails holds up no other.
    pub(crate) fn others_leave(
        &self,
        service: &DesiredService,
        engine: EngineKind,
        current: &CurrentState,
    ) -> bool {
        self.leaving().any(|container| {
            let subject = Subject::Service(container.key.clone());
            container.engine == engine
                && container.key != service.key
                && !current.failed.contains_key(&subject)
        })
    }

    fn leaving(&self) -> impl Iterator<Item = &'a CurrentService> {
        let replaced = self
            .wanted
            .values()
            .filter_map(|planned| match planned.disposition {
                Disposition::Replace(container, _) => Some(container),
                Disposition::Keep(_) | Disposition::Missing => None,
            });
        replaced
            .chain(self.wanted.values().flat_map(|s| s.surplus.iter().copied()))
            .chain(self.unwanted.values().flatten().copied())
            .chain(self.dead.iter().copied())
            .chain(self.fading.iter().copied())
    }
}

/// Sorts the containers of `app` by what becomes of them.
pub(crate) fn classify<'a>(app: &App<'a>) -> ServicePlans<'a> {
    let mut plans = ServicePlans::default();
    let mut alive: BTreeMap<&ServiceName, Vec<&CurrentService>> = BTreeMap::new();
    let mut fading: BTreeMap<&ServiceName, &CurrentService> = BTreeMap::new();
    for container in &app.containers {
        let service = &container.key.service;
        match container.state {
            ContainerState::Dead => {
                plans.dead.push(container);
                fading.insert(service, container);
            }
            ContainerState::Removing => {
                fading.insert(service, container);
            }
            _ => alive.entry(service).or_default().push(container),
        }
    }
    for desired in app.desired.iter().flat_map(|app| app.services.values()) {
        let mut containers = alive.remove(&desired.key.service).unwrap_or_default();
        // The newest is kept. Engines that count whole seconds call two of one update equally old:
        // then the one that the target names.
        let name = desired.container_name();
        containers.sort_by_key(|c| Reverse((c.created_at_ms, c.name == name, &c.container)));
        let mut containers = containers.into_iter();
        let disposition = match containers.next() {
            Some(newest) => match check_current(app, desired, newest) {
                Ok(()) => Disposition::Keep(newest),
                Err(reason) => Disposition::Replace(newest, reason),
            },
            None => Disposition::Missing,
        };
        let planned = ServicePlan {
            desired,
            disposition,
            surplus: containers.collect(),
            fading: fading.remove(&desired.key.service).is_some(),
            held: matches!(disposition, Disposition::Keep(kept) if app.current.held.contains(&kept.container)),
        };
        plans.wanted.insert(&desired.key.service, planned);
    }
    plans.unwanted = alive;
    let leaving = fading.into_values();
    plans.fading = leaving
        .filter(|c| c.state == ContainerState::Removing)
        .collect();
    replace_joined(&mut plans, &app.current.network_containers);
    plans
}

/// Whether `container` was made as `desired` wants it, from what the image reference names now, with
/// volumes and networks that stay. A key to the API that was replaced since waits for the next update.
///
/// # Errors
/// Why the container has to be made anew.
fn check_current(
    app: &App<'_>,
    desired: &DesiredService,
    container: &CurrentService,
) -> Result<(), StepReason> {
    if app.current.recreated.contains(&container.container) {
        return Err(StepReason::Restart);
    }
    let image = app.placement(desired).image(desired).ok();
    if image.is_some_and(|it| it.engine != container.engine || it.id != container.engine_image) {
        return Err(StepReason::ImageChanged);
    }
    let is_made_so = container.digest.as_deref() == Some(desired.digest.as_str())
        || app.current.replaced_keys.concern(container);
    if !is_made_so {
        // The image that is not there yet has only its name to tell it from the container's.
        let has_other_name = familiar(&container.image) != familiar(desired.config.image.as_str());
        return Err(if image.is_none() && has_other_name {
            StepReason::ImageChanged
        } else {
            StepReason::ConfigurationChanged
        });
    }
    // An image that is no longer there is no reason to touch a container that was made from it.
    let components = app.components_of(desired, container.engine);
    let changed = |(_, state): &(_, ComponentState)| *state == ComponentState::Changed;
    if components.iter().any(changed) {
        return Err(StepReason::ComponentChanged);
    }
    Ok(())
}

/// A container that shares the network stack of another goes when that one does: repeated until no
/// further one falls, since it may itself be shared.
fn replace_joined(plans: &mut ServicePlans<'_>, joined: &BTreeMap<ContainerId, ContainerId>) {
    loop {
        let fallen = plans.wanted.iter().find_map(|(name, planned)| {
            let NetworkMode::Service(host) = &planned.desired.config.network_mode else {
                return None;
            };
            let kept = planned.kept()?;
            let host = plans.wanted.get(host).map(|host| host.disposition);
            let stands = match host {
                Some(Disposition::Keep(host)) => {
                    joined.get(&kept.container) == Some(&host.container)
                }
                _ => false,
            };
            (!stands).then_some((*name, kept))
        });
        let Some((name, container)) = fallen else {
            return;
        };
        if let Some(planned) = plans.wanted.get_mut(name) {
            planned.disposition = Disposition::Replace(container, StepReason::NetworkChanged);
        }
    }
}
