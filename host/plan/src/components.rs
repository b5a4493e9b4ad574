//! Volumes and networks: created on each engine that runs services of their app, removed when nothing uses them
//! (docs/spec/device.md#order).

use std::collections::BTreeSet;
use strum::VariantArray;

use device_types::plan::StepReason;
use model::{DesiredApp, DesiredService, EngineKind, Mount, NetworkMode};

use crate::app::{App, Draft};
use crate::component::{components_of, find_component, has_component};
use crate::plan::Gate;
use crate::services::{ServicePlan, ServicePlans};
use crate::{ComponentKind, CurrentComponent, CurrentState, DesiredComponent, Step};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComponentState {
    Absent,
    /// Its configuration differs: it is removed once nothing uses it, and created again.
    Changed,
    Right,
}

/// Compares the component `name` on `engine` with its desired configuration.
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
        // A component without a digest stays: removing a volume deletes its data.
        _ => ComponentState::Right,
    }
}

impl App<'_> {
    /// Returns the volumes and networks of the release that `service` uses, with their state on `engine`.
    pub(crate) fn components_of<'s>(
        &self,
        service: &'s DesiredService,
        engine: EngineKind,
    ) -> Vec<(&'s str, ComponentState)> {
        let Some(app) = self.desired else {
            return Vec::new();
        };
        let mounts = service.config.mounts.iter();
        let volumes = mounts.filter_map(|mount| match mount {
            Mount::Volume { source, .. } => Some((ComponentKind::Volume, source.as_str())),
            _ => None,
        });
        let mut networks: BTreeSet<&str> =
            service.config.networks.keys().map(String::as_str).collect();
        if let NetworkMode::Network(name) = &service.config.network_mode {
            networks.insert(name);
        }
        let networks = networks
            .into_iter()
            .map(|name| (ComponentKind::Network, name));
        let states = volumes.chain(networks).filter_map(|(kind, name)| {
            if self.is_api_network(kind, name) {
                // Its digest is ignored: nobody may change the network while the API listens on it.
                let state = match self.current.component(kind, engine, name) {
                    None => ComponentState::Absent,
                    Some(_) => ComponentState::Right,
                };
                return Some((name, state));
            }
            let (_, digest) = components_of(app, kind).find(|(own, _)| *own == name)?;
            Some((name, compare(self.current, kind, engine, name, digest)))
        });
        states.collect()
    }

    fn is_api_network(&self, kind: ComponentKind, name: &str) -> bool {
        let api_network = self.current.api_network.as_ref();
        kind == ComponentKind::Network && api_network.is_some_and(|api| api.engine_name == name)
    }

    /// Returns whether a volume or network of the release must be recreated. That waits until every departing container
    /// on its engine is gone, so none of these may wait for a new container.
    pub(crate) fn remakes_components(&self) -> bool {
        let Some(app) = self.desired else {
            return false;
        };
        ComponentKind::VARIANTS.iter().any(|&kind| {
            components_of(app, kind).any(|(name, digest)| {
                let mut engines = self.current.engines.keys();
                engines.any(|engine| {
                    compare(self.current, kind, *engine, name, digest) == ComponentState::Changed
                })
            })
        })
    }

    /// Returns the engines that need the volumes and networks of this app: those that run its services, or the default
    /// engine if it has none. If the engine of an image is not known yet, they are created there once it is.
    pub(crate) fn engines(&self, services: &ServicePlans<'_>) -> BTreeSet<EngineKind> {
        let Some(app) = self.desired else {
            return BTreeSet::new();
        };
        let mut engines: BTreeSet<EngineKind> = BTreeSet::new();
        for planned in services.desired.values() {
            engines.extend(self.engine_of(planned));
        }
        if app.services.is_empty() {
            engines.extend(self.current.default_engine);
        }
        engines.retain(|engine| self.current.answers(*engine));
        engines
    }

    /// Returns the engine of a service: that of its kept container, or else the one where it will be placed, if that is
    /// known.
    fn engine_of(&self, planned: &ServicePlan<'_>) -> Option<EngineKind> {
        let kept = planned.kept().map(|container| container.engine);
        kept.or_else(|| self.placement(planned.desired).engine())
    }
}

pub(crate) fn plan_components(app: &App<'_>, services: &ServicePlans<'_>, draft: &mut Draft) {
    for engine in app.engines(services) {
        create_or_remake(app, engine, services, draft);
    }
    create_api_network(app, services, draft);
    remove_undesired(app, services, draft);
}

fn create_or_remake(
    app: &App<'_>,
    engine: EngineKind,
    services: &ServicePlans<'_>,
    draft: &mut Draft,
) {
    let Some(desired) = app.desired else { return };
    // A departing container may use any of them; one that is kept uses none that changed.
    let in_use = services.has_leaving(engine);
    for &kind in ComponentKind::VARIANTS {
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
                push(app, step, in_use, draft);
            }
        }
    }
}

/// Creates the network of the device's API on the engines that need it, also for a container that is kept and has to be
/// started: somebody may have removed the network while nothing used it. Two apps may plan it in one pass;
/// [`crate::plan`] keeps the first.
fn create_api_network(app: &App<'_>, services: &ServicePlans<'_>, draft: &mut Draft) {
    let Some(network) = &app.current.api_network else {
        return;
    };
    let mut engines = BTreeSet::new();
    for planned in services.desired.values() {
        let asks = planned
            .desired
            .config
            .networks
            .contains_key(&network.engine_name);
        let is_started = planned.kept().is_none() || planned.is_to_start(app.current);
        if asks && is_started {
            engines.extend(app.engine_of(planned));
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
                draft,
            );
        }
    }
}

/// Removes networks that the release does not contain. Volumes stay until the app is removed, and in local mode even
/// then. A purge removes them all.
fn remove_undesired(app: &App<'_>, services: &ServicePlans<'_>, draft: &mut Draft) {
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
            push(app, step, services.has_leaving(held.engine), draft);
        }
    }
}

fn push(app: &App<'_>, step: Step, in_use: bool, draft: &mut Draft) {
    let removes = matches!(step, Step::RemoveComponent { .. });
    let subject = step.subject();
    if !app.current.is_busy(&subject) && removes && in_use {
        // The removal waits until the users of the component are killed.
        draft.unfinished = true;
        return;
    }
    match draft.plan.gate(app.current, &subject) {
        Gate::Busy => draft.wait_for_step_in_flight(),
        Gate::Held => {}
        Gate::Open => {
            draft.keep_locks = true;
            draft.plan.steps.push(step);
        }
    }
}
