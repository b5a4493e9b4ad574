//! Volumes and networks: created on each engine that runs services of their app, removed when nothing uses them
//! (docs/spec/device.md#order).

use std::collections::BTreeSet;
use strum::VariantArray;

use device_types::plan::StepReason;
use model::{DesiredApp, EngineKind};

use crate::app::App;
use crate::component::{
    ComponentKind, DesiredComponent, components_of, find_component, has_component,
};
use crate::component_state::{ComponentState, compare};
use crate::current::CurrentComponent;
use crate::draft::Draft;
use crate::plan::Gate;
use crate::services::{ServicePlan, ServicePlans};
use crate::step::Step;

impl App<'_> {
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
