//! Volumes and networks: made on each engine that runs services of their app, removed when nothing
//! uses them (docs/spec/device.md#order).

use std::collections::BTreeSet;

use device_types::plan::StepReason;
use model::{DesiredApp, DesiredService, EngineKind, Mount, NetworkMode};

use crate::app::App;
use crate::component::{components_of, find_component, has_component};
use crate::services::{Disposition, ServicePlans};
use crate::{
    ComponentKind, CurrentComponent, CurrentState, DesiredComponent, Step, Subject, WaitingOn,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComponentState {
    Absent,
    /// Its configuration differs: it is removed once nothing uses it, and created again.
    Changed,
    Right,
}

/// Compares the component `name` on `engine` with what it should be.
fn compare(
    current: &CurrentState,
    kind: ComponentKind,
    engine: EngineKind,
    name: &str,
    digest: &str,
) -> ComponentState {
    let Some(found) = current.component(kind, engine, name) else {
        return ComponentState::Absent;
    };
    match &found.digest {
        Some(found) if found != digest => ComponentState::Changed,
        // One that does not say what it was made from stays: removing a volume loses its data.
        _ => ComponentState::Right,
    }
}

impl App<'_> {
    /// The volumes and networks of the release that `service` uses, as they are on `engine`.
    pub(crate) fn components_of<'s>(
        &self,
        service: &'s DesiredService,
        engine: EngineKind,
    ) -> Vec<(&'s str, ComponentState)> {
        let Some(app) = self.desired else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for mount in &service.config.mounts {
            if let Mount::Volume { source, .. } = mount
                && let Some(volume) = app.volumes.values().find(|v| v.engine_name == *source)
            {
                let state = compare(
                    self.current,
                    ComponentKind::Volume,
                    engine,
                    source,
                    &volume.digest,
                );
                found.push((source.as_str(), state));
            }
        }
        let mut networks: BTreeSet<&str> =
            service.config.networks.keys().map(String::as_str).collect();
        if let NetworkMode::Network(name) = &service.config.network_mode {
            networks.insert(name);
        }
        let api_network = self.current.api_network.as_ref();
        for name in networks {
            if api_network.is_some_and(|network| network.engine_name == name) {
                // Its digest is not looked at: it is nobody's to change while the API listens on it.
                let state = match compare(self.current, ComponentKind::Network, engine, name, "") {
                    ComponentState::Absent => ComponentState::Absent,
                    ComponentState::Changed | ComponentState::Right => ComponentState::Right,
                };
                found.push((name, state));
            } else if let Some(network) = app.networks.values().find(|n| n.engine_name == name) {
                let state = compare(
                    self.current,
                    ComponentKind::Network,
                    engine,
                    name,
                    &network.digest,
                );
                found.push((name, state));
            }
        }
        found
    }

    /// Whether a volume or network of the release is to be made anew: that waits for every container on
    /// its engine that goes, so none of them may wait for one that comes.
    pub(crate) fn remakes_components(&self) -> bool {
        let Some(app) = self.desired else {
            return false;
        };
        ComponentKind::ALL.into_iter().any(|kind| {
            components_of(app, kind).any(|(name, digest)| {
                let mut engines = self.current.engines.keys();
                engines.any(|engine| {
                    compare(self.current, kind, *engine, name, digest) == ComponentState::Changed
                })
            })
        })
    }

    /// The engines that volumes and networks of this app belong on: those that run its services, or
    /// the default if it has none. An engine that only an image still unknown may need gets them
    /// when the image is known.
    pub(crate) fn engines(&self, services: &ServicePlans<'_>) -> BTreeSet<EngineKind> {
        let Some(app) = self.desired else {
            return BTreeSet::new();
        };
        let mut engines: BTreeSet<EngineKind> = BTreeSet::new();
        for planned in services.wanted.values() {
            let kept = match planned.disposition {
                Disposition::Keep(container) => Some(container.engine),
                Disposition::Replace(..) | Disposition::Missing => None,
            };
            engines.extend(kept.or_else(|| self.placement(planned.desired).engine()));
        }
        if app.services.is_empty() {
            engines.extend(self.current.default_engine);
        }
        engines.retain(|engine| self.current.answers(*engine));
        engines
    }
}

/// The state of the components of one app.
#[derive(Debug, Default)]
pub(crate) struct ComponentWork {
    pub steps: Vec<Step>,
    pub waiting_on: Vec<WaitingOn>,
    /// Whether a step on one of them is in flight.
    pub busy: bool,
    /// Whether one of them waits until its users are killed.
    pub blocked: bool,
}

pub(crate) fn plan_components(app: &App<'_>, services: &ServicePlans<'_>) -> ComponentWork {
    let mut work = ComponentWork::default();
    for engine in app.engines(services) {
        create_or_remake(app, engine, services, &mut work);
    }
    create_api_network(app, services, &mut work);
    remove_undesired(app, services, &mut work);
    work
}

fn create_or_remake(
    app: &App<'_>,
    engine: EngineKind,
    services: &ServicePlans<'_>,
    work: &mut ComponentWork,
) {
    let Some(desired) = app.desired else { return };
    // A container that goes may use any of them; one that is kept uses none that changed.
    let in_use = services.has_leaving(engine);
    for kind in ComponentKind::ALL {
        for (name, digest) in components_of(desired, kind) {
            let step = match compare(app.current, kind, engine, name, digest) {
                ComponentState::Right => None,
                ComponentState::Absent => find_component(desired, kind, name)
                    .map(|component| Step::CreateComponent { engine, component }),
                ComponentState::Changed => Some(Step::RemoveComponent {
                    engine,
                    kind,
                    name: name.to_owned(),
                    reason: StepReason::ConfigurationChanged,
                }),
            };
            if let Some(step) = step {
                push(app, step, in_use, work);
            }
        }
    }
}

/// Makes the network of the device's API on the engines that need it. Two apps may plan it in one pass;
/// [`crate::plan`] keeps the first.
fn create_api_network(app: &App<'_>, services: &ServicePlans<'_>, work: &mut ComponentWork) {
    let Some(network) = &app.current.api_network else {
        return;
    };
    let mut engines = BTreeSet::new();
    for planned in services.wanted.values() {
        let asks = planned
            .desired
            .config
            .networks
            .contains_key(&network.engine_name);
        if asks && planned.kept().is_none() {
            engines.extend(app.placement(planned.desired).engine());
        }
    }
    for engine in engines {
        let name = &network.engine_name;
        if app.current.answers(engine)
            && app
                .current
                .component(ComponentKind::Network, engine, name)
                .is_none()
        {
            let component = DesiredComponent::Network(network.clone());
            push(
                app,
                Step::CreateComponent { engine, component },
                false,
                work,
            );
        }
    }
}

/// Networks that the release does not have go; volumes stay until the app goes, and in local mode
/// then too. A purge removes them all.
fn remove_undesired(app: &App<'_>, services: &ServicePlans<'_>, work: &mut ComponentWork) {
    let purged = app.current.purged.contains(app.uuid);
    let reason = app.removal_reason();
    let keeps_volumes = !purged && (app.desired.is_some() || app.current.local_mode);
    for kind in [ComponentKind::Network, ComponentKind::Volume] {
        if kind == ComponentKind::Volume && keeps_volumes {
            continue;
        }
        let ours = |held: &&CurrentComponent| held.app.as_ref() == Some(app.uuid);
        for held in app.current.components(kind).iter().filter(ours) {
            let is_wanted = |desired: &DesiredApp| has_component(desired, kind, &held.name);
            if kind == ComponentKind::Network && app.desired.is_some_and(is_wanted) {
                continue;
            }
            let step = Step::RemoveComponent {
                engine: held.engine,
                kind,
                name: held.name.clone(),
                reason,
            };
            push(app, step, services.has_leaving(held.engine), work);
        }
    }
}

fn push(app: &App<'_>, step: Step, in_use: bool, work: &mut ComponentWork) {
    let removes = matches!(step, Step::RemoveComponent { .. });
    let subject: Subject = step.subject();
    if app.current.is_busy(&subject) {
        work.busy = true;
    } else if removes && in_use {
        work.blocked = true;
    } else if let Some(failure) = app.current.held(&subject) {
        let reason = failure.blocker();
        work.waiting_on.push(WaitingOn { subject, reason });
    } else {
        work.steps.push(step);
    }
}
