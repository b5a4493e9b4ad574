//! Volumes and networks: made on each engine that runs services of their app, removed when nothing
//! uses them (device behaviour 5.3).

use std::collections::BTreeSet;

use model::{DesiredService, EngineKind, Mount, NetworkMode};

use crate::app::App;
use crate::services::{Fate, ServicePlans};
use crate::{CurrentComponent, Reason, Step, Subject, WaitingOn};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComponentState {
    Absent,
    /// It was made from another configuration: it goes once its users are gone, and is made anew.
    Changed,
    Right,
}

/// Compares the component `name` on `engine` with what it should be.
fn compare(
    held: &[CurrentComponent],
    engine: EngineKind,
    name: &str,
    digest: &str,
) -> ComponentState {
    let Some(found) = held.iter().find(|c| c.engine == engine && c.name == name) else {
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
                let state = compare(&self.current.volumes, engine, source, &volume.digest);
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
                let state = match compare(&self.current.networks, engine, name, "") {
                    ComponentState::Absent => ComponentState::Absent,
                    ComponentState::Changed | ComponentState::Right => ComponentState::Right,
                };
                found.push((name, state));
            } else if let Some(network) = app.networks.values().find(|n| n.engine_name == name) {
                let state = compare(&self.current.networks, engine, name, &network.digest);
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
        let changed = |held: &[CurrentComponent], name: &str, digest: &str| {
            let mut engines = self.current.engines.keys();
            engines.any(|engine| compare(held, *engine, name, digest) == ComponentState::Changed)
        };
        let mut volumes = app.volumes.values();
        let mut networks = app.networks.values();
        volumes.any(|v| changed(&self.current.volumes, &v.engine_name, &v.digest))
            || networks.any(|n| changed(&self.current.networks, &n.engine_name, &n.digest))
    }

    /// The engines that volumes and networks of this app belong on: those that run its services, or
    /// the default where it has none. An engine that only an image still unknown may need gets them
    /// when the image is known.
    pub(crate) fn engines(&self, services: &ServicePlans<'_>) -> BTreeSet<EngineKind> {
        let Some(app) = self.desired else {
            return BTreeSet::new();
        };
        let mut engines: BTreeSet<EngineKind> = BTreeSet::new();
        for planned in services.wanted.values() {
            let kept = match planned.fate {
                Fate::Keep(container) => Some(container.engine),
                Fate::Replace(_) | Fate::Missing => None,
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

/// What the components of one app need.
#[derive(Debug, Default)]
pub(crate) struct ComponentWork {
    pub steps: Vec<Step>,
    pub waiting_on: Vec<WaitingOn>,
    /// A step about one of them is in flight.
    pub busy: bool,
    /// One of them waits for its users to be killed.
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
    for volume in desired.volumes.values() {
        let name = &volume.engine_name;
        let step = match compare(&app.current.volumes, engine, name, &volume.digest) {
            ComponentState::Right => None,
            ComponentState::Absent => Some(Step::CreateVolume {
                engine,
                volume: volume.clone(),
            }),
            ComponentState::Changed => Some(Step::RemoveVolume {
                engine,
                name: name.clone(),
            }),
        };
        push(app, step, in_use, work);
    }
    for network in desired.networks.values() {
        let name = &network.engine_name;
        let step = match compare(&app.current.networks, engine, name, &network.digest) {
            ComponentState::Right => None,
            ComponentState::Absent => Some(Step::CreateNetwork {
                engine,
                network: network.clone(),
            }),
            ComponentState::Changed => Some(Step::RemoveNetwork {
                engine,
                name: name.clone(),
            }),
        };
        push(app, step, in_use, work);
    }
}

/// Makes the network of the device's API on the engines that need it. Two apps may plan it in one lap;
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
            && compare(&app.current.networks, engine, name, "") == ComponentState::Absent
        {
            let network = network.clone();
            push(
                app,
                Some(Step::CreateNetwork { engine, network }),
                false,
                work,
            );
        }
    }
}

/// Networks that the release does not have go; volumes stay until the app goes, and in local mode
/// then too. A purge removes them all.
fn remove_undesired(app: &App<'_>, services: &ServicePlans<'_>, work: &mut ComponentWork) {
    let ours = |component: &&CurrentComponent| component.app.as_ref() == Some(app.uuid);
    for network in app.current.networks.iter().filter(ours) {
        let wanted = app.desired.is_some_and(|desired| {
            let mut networks = desired.networks.values();
            networks.any(|wanted| wanted.engine_name == network.name)
        });
        let step = Step::RemoveNetwork {
            engine: network.engine,
            name: network.name.clone(),
        };
        if !wanted {
            let in_use = services.has_leaving(network.engine);
            push(app, Some(step), in_use, work);
        }
    }
    let purged = app.current.purged.contains(app.uuid);
    if !purged && (app.desired.is_some() || app.current.local_mode) {
        return;
    }
    for volume in app.current.volumes.iter().filter(ours) {
        let step = Step::RemoveVolume {
            engine: volume.engine,
            name: volume.name.clone(),
        };
        let in_use = services.has_leaving(volume.engine);
        push(app, Some(step), in_use, work);
    }
}

fn push(app: &App<'_>, step: Option<Step>, in_use: bool, work: &mut ComponentWork) {
    let Some(step) = step else { return };
    let removes = matches!(step, Step::RemoveVolume { .. } | Step::RemoveNetwork { .. });
    let subject: Subject = step.subject();
    if app.current.is_busy(&subject) {
        work.busy = true;
    } else if removes && in_use {
        work.blocked = true;
    } else if let Some(failure) = app.current.held(&subject) {
        let reason = Reason::Failed(failure.reason.clone());
        work.waiting_on.push(WaitingOn { subject, reason });
    } else {
        work.steps.push(step);
    }
}
