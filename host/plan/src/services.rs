//! The fate of each container: kept, renamed, recreated or removed (docs/spec/device.md#order).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use device_types::plan::StepReason;
use model::{
    ContainerId, ContainerState, CurrentService, DesiredService, EngineKind, NetworkMode,
    ServiceName,
};

use crate::app::App;
use crate::component_state::ComponentState;
use crate::current::CurrentState;
use crate::placement::short_reference;
use crate::subject::Subject;

/// The fate of the newest container of a service of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition<'a> {
    /// Its configuration matches the target. Its name, and whether it runs, may still differ.
    Keep(&'a CurrentService),
    /// It must be recreated, for this reason.
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
    pub duplicates: Vec<&'a CurrentService>,
    /// Whether the engine is still removing an old container, which may still have the name.
    pub removal_pending: bool,
    /// Whether the kept container was stopped over the API, and stays stopped.
    pub held: bool,
}

/// The services of one app.
#[derive(Debug, Default)]
pub(crate) struct ServicePlans<'a> {
    pub desired: BTreeMap<&'a ServiceName, ServicePlan<'a>>,
    /// Containers of services that the target does not contain, by service.
    pub unwanted: BTreeMap<&'a ServiceName, Vec<&'a CurrentService>>,
    /// Containers that the engine failed to remove.
    pub dead: Vec<&'a CurrentService>,
    /// Containers that the engine is removing, of services that the target does not contain.
    pub being_removed: Vec<&'a CurrentService>,
}

impl<'a> ServicePlan<'a> {
    /// Returns the container that is kept.
    pub(crate) fn kept(&self) -> Option<&'a CurrentService> {
        match self.disposition {
            Disposition::Keep(container) => Some(container),
            Disposition::Replace(..) | Disposition::Missing => None,
        }
    }

    /// Returns whether the name of the kept container contains another release than the target.
    pub(crate) fn is_misnamed(&self) -> bool {
        self.kept()
            .is_some_and(|kept| kept.name != self.desired.container_name())
    }

    /// Returns whether the kept container runs, or is about to, and should not.
    pub(crate) fn is_to_stop(&self) -> bool {
        let should_run = self.desired.running && !self.held;
        !should_run && self.kept().is_some_and(CurrentService::runs)
    }

    /// Returns whether the kept container should run and must be started by the supervisor: it never ran, or the
    /// supervisor stopped it. A container that exited by itself is left to its restart policy.
    pub(crate) fn is_to_start(&self, current: &CurrentState) -> bool {
        let waits = |kept: &CurrentService| match kept.state {
            ContainerState::Created => true,
            ContainerState::Exited => current.stopped.contains(&kept.container),
            _ => false,
        };
        self.desired.running && !self.held && self.kept().is_some_and(waits)
    }

    /// Returns whether bringing this service to the target disturbs a container.
    pub(crate) fn disturbs(&self) -> bool {
        matches!(self.disposition, Disposition::Replace(..))
            || !self.duplicates.is_empty()
            || self.is_misnamed()
            || self.is_to_stop()
    }
}

impl<'a> ServicePlans<'a> {
    /// Returns whether a container on `engine` must be removed, or is being removed.
    pub(crate) fn has_leaving(&self, engine: EngineKind) -> bool {
        self.leaving().any(|container| container.engine == engine)
    }

    /// Like [`Self::has_leaving`], but for containers of services other than `service`, and without those that could
    /// not be removed: a service that fails must not delay another.
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
            .desired
            .values()
            .filter_map(|planned| match planned.disposition {
                Disposition::Replace(container, _) => Some(container),
                Disposition::Keep(_) | Disposition::Missing => None,
            });
        replaced
            .chain(
                self.desired
                    .values()
                    .flat_map(|s| s.duplicates.iter().copied()),
            )
            .chain(self.unwanted.values().flatten().copied())
            .chain(self.dead.iter().copied())
            .chain(self.being_removed.iter().copied())
    }
}

/// Classifies the containers of `app` by their fate.
pub(crate) fn classify<'a>(app: &App<'a>) -> ServicePlans<'a> {
    let mut plans = ServicePlans::default();
    let mut alive: BTreeMap<&ServiceName, Vec<&CurrentService>> = BTreeMap::new();
    let mut being_removed: BTreeMap<&ServiceName, &CurrentService> = BTreeMap::new();
    for container in &app.containers {
        let service = &container.key.service;
        match container.state {
            _ if is_dead(app, container) => {
                plans.dead.push(container);
                being_removed.insert(service, container);
            }
            ContainerState::Removing => {
                being_removed.insert(service, container);
            }
            _ => alive.entry(service).or_default().push(container),
        }
    }
    for desired in app.desired.iter().flat_map(|app| app.services.values()) {
        let mut containers = alive.remove(&desired.key.service).unwrap_or_default();
        // The newest is kept. Engines with a resolution of seconds may report two containers of one update as equally
        // old: then the one with the target's name is kept.
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
            duplicates: containers.collect(),
            removal_pending: being_removed.remove(&desired.key.service).is_some(),
            held: matches!(disposition, Disposition::Keep(kept) if app.current.held.contains(&kept.container)),
        };
        plans.desired.insert(&desired.key.service, planned);
    }
    plans.unwanted = alive;
    let leaving = being_removed.into_values();
    plans.being_removed = leaving
        .filter(|c| c.state == ContainerState::Removing)
        .collect();
    replace_joined(&mut plans, &app.current.network_containers);
    plans
}

/// Returns whether a container can only be removed.
fn is_dead(app: &App<'_>, container: &CurrentService) -> bool {
    match container.state {
        ContainerState::Dead => true,
        ContainerState::Created | ContainerState::Exited => {
            let subject = Subject::Service(container.key.clone());
            let failure = app.current.failed.get(&subject);
            failure.and_then(|failure| failure.stuck_container.as_ref())
                == Some(&container.container)
        }
        _ => false,
    }
}

/// Checks that `container` was created from the configuration of `desired` and from the current image of its reference,
/// with volumes and networks that stay. An API key that was replaced since waits for the next update.
///
/// # Errors
/// Returns the reason why the container must be recreated.
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
    let is_made_so = container.digest.as_deref() == Some(desired.digest.as_str());
    let has_old_key = !is_made_so && app.current.replaced_keys.concerns(container);
    if has_old_key && app.current.replaced_keys.are_due() {
        return Err(StepReason::KeyReplaced);
    }
    if !is_made_so && !has_old_key {
        // An image that is not present yet can be compared with the container's only by its name.
        let has_other_name =
            short_reference(&container.image) != short_reference(desired.config.image.as_str());
        return Err(if image.is_none() && has_other_name {
            StepReason::ImageChanged
        } else {
            StepReason::ConfigurationChanged
        });
    }
    // A missing image is no reason to touch a container that was created from it.
    let components = app.components_of(desired, container.engine);
    let changed = |(_, state): &(_, ComponentState)| *state == ComponentState::Changed;
    if components.iter().any(changed) {
        return Err(StepReason::ComponentChanged);
    }
    Ok(())
}

/// Replaces containers that share the network stack of a container that is replaced or removed. Repeats until nothing
/// changes, since their own stacks may be shared too.
fn replace_joined(plans: &mut ServicePlans<'_>, joined: &BTreeMap<ContainerId, ContainerId>) {
    loop {
        let fallen = plans.desired.iter().find_map(|(name, planned)| {
            let NetworkMode::Service(host) = &planned.desired.config.network_mode else {
                return None;
            };
            let kept = planned.kept()?;
            let host = plans.desired.get(host).map(|host| host.disposition);
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
        if let Some(planned) = plans.desired.get_mut(name) {
            planned.disposition = Disposition::Replace(container, StepReason::NetworkChanged);
        }
    }
}
