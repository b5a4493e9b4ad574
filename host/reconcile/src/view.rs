//! The known objects on the engines: the result of the last listing, with the effects of our own finished steps added,
//! so that the next step need not wait for a new listing.
//!
//! A listing that began before such an effect is discarded for that kind of object, since it may not show the effect.
//! The engine's own data always wins in the end: after the last step, everything that was added is listed again.

mod effect;
mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use model::{
    Branding, CONFIG_DIGEST_LABEL, Container, ContainerId, CurrentService, EngineKind, Image,
};
use plan::{ComponentKind, CurrentComponent, CurrentState, EngineHealth, Subject};

pub(crate) use effect::Effect;

/// The label, below the branding's namespace, of a container that shares the network stack of another: the id of that
/// container. It is not part of the compared configuration.
pub(crate) const NETWORK_CONTAINER_LABEL: &str = "network-container";

/// The kinds of objects that can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ObjectKind {
    Containers,
    Images,
    Volumes,
    Networks,
}

impl From<ComponentKind> for ObjectKind {
    fn from(kind: ComponentKind) -> Self {
        match kind {
            ComponentKind::Volume => ObjectKind::Volumes,
            ComponentKind::Network => ObjectKind::Networks,
        }
    }
}

pub(crate) const KINDS: [ObjectKind; 4] = [
    ObjectKind::Containers,
    ObjectKind::Images,
    ObjectKind::Volumes,
    ObjectKind::Networks,
];

/// The objects on an engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct EngineObjects {
    pub containers: Vec<Container>,
    pub images: Vec<Image>,
    pub volumes: Vec<CurrentComponent>,
    pub networks: Vec<CurrentComponent>,
}

/// One engine's objects.
#[derive(Debug, Clone)]
pub(crate) struct EngineView {
    pub health: EngineHealth,
    pub objects: EngineObjects,
    /// The kinds to be listed.
    stale: BTreeSet<ObjectKind>,
    /// The kinds that had an effect added since the last listing.
    unverified: BTreeSet<ObjectKind>,
    /// When (in [`View::time`]) the last listing of a kind began, and the last effect was added.
    listed: BTreeMap<ObjectKind, u64>,
    patched: BTreeMap<ObjectKind, u64>,
}

/// All engines' objects.
#[derive(Debug)]
pub(crate) struct View {
    pub engines: BTreeMap<EngineKind, EngineView>,
    branding: Branding,
    /// Engines whose network of the API belongs to another supervisor, and is therefore not listed. After a failed step it
    /// is created again, because the other supervisor may have removed it.
    shares_api_network: BTreeSet<EngineKind>,
    /// Counts listings and effects.
    time: u64,
    /// Subjects of failed steps, whose effect is unknown until everything was listed after that time.
    unknown: Vec<(Subject, u64)>,
}

/// A listing of the requested kinds.
#[derive(Debug)]
pub(crate) struct Listing {
    pub engine: EngineKind,
    pub begun: u64,
    /// The requested kinds.
    pub kinds: BTreeSet<ObjectKind>,
    /// Empty for kinds that were not requested or could not be listed.
    pub objects: EngineObjects,
    /// Why a kind could not be listed.
    pub failure: Option<String>,
}

impl View {
    pub(crate) fn new(engines: impl Iterator<Item = EngineKind>, branding: Branding) -> Self {
        let unknown = || EngineView {
            health: EngineHealth::Answers,
            objects: EngineObjects::default(),
            stale: KINDS.into_iter().collect(),
            unverified: BTreeSet::new(),
            listed: BTreeMap::new(),
            patched: BTreeMap::new(),
        };
        View {
            engines: engines.map(|engine| (engine, unknown())).collect(),
            branding,
            shares_api_network: BTreeSet::new(),
            time: 0,
            unknown: Vec::new(),
        }
    }

    /// Returns whether every engine was listed once, or is known not to answer.
    pub(crate) fn is_known(&self) -> bool {
        self.engines.values().all(|view| {
            view.answers()
                .is_none_or(|_| view.listed.len() == KINDS.len())
        })
    }

    pub(crate) fn mark(&mut self, engine: EngineKind, kinds: impl IntoIterator<Item = ObjectKind>) {
        if let Some(view) = self.engines.get_mut(&engine) {
            view.stale.extend(kinds);
        }
    }

    /// Requests a listing of all added effects that were never listed; returns `false` if there are none.
    pub(crate) fn verify(&mut self) -> bool {
        let mut any = false;
        for view in self.engines.values_mut() {
            any |= !view.unverified.is_empty();
            let unverified = take(&mut view.unverified);
            view.stale.extend(unverified);
        }
        any
    }

    /// Returns the kinds to list on `engine`, and the time at which that begins; `None` if there is nothing to list.
    pub(crate) fn begin(&mut self, engine: EngineKind) -> Option<(BTreeSet<ObjectKind>, u64)> {
        let view = self.engines.get_mut(&engine)?;
        if view.stale.is_empty() {
            return None;
        }
        self.time += 1;
        Some((take(&mut view.stale), self.time))
    }

    /// Applies a listing. A failure keeps the previous objects, marked to be listed again.
    pub(crate) fn listed(&mut self, listing: Listing) {
        let Some(view) = self.engines.get_mut(&listing.engine) else {
            return;
        };
        if let Some(why) = listing.failure {
            view.health = EngineHealth::Silent(why);
            view.stale.extend(KINDS);
            return;
        }
        let (begun, mut listed) = (listing.begun, listing.objects);
        for kind in listing.kinds {
            let last_effect = view.patched.get(&kind);
            if last_effect.is_some_and(|last_effect| *last_effect >= begun) {
                view.stale.insert(kind);
                continue;
            }
            view.listed.insert(kind, begun);
            view.unverified.remove(&kind);
            let objects = &mut view.objects;
            match kind {
                ObjectKind::Containers => objects.containers = take(&mut listed.containers),
                ObjectKind::Images => objects.images = take(&mut listed.images),
                ObjectKind::Volumes => objects.volumes = take(&mut listed.volumes),
                ObjectKind::Networks => objects.networks = take(&mut listed.networks),
            }
        }
        view.health = EngineHealth::Answers;
    }

    /// Marks the effect of a step about `subject` as unknown: the subject stays busy until everything has been listed.
    pub(crate) fn invalidate(&mut self, subject: Subject) {
        self.time += 1;
        self.unknown.push((subject, self.time));
        self.shares_api_network.clear();
        for view in self.engines.values_mut() {
            view.stale.extend(KINDS);
        }
    }

    /// Invalidates everything; a listing that is under way does not count.
    pub(crate) fn invalidate_all(&mut self) {
        self.time += 1;
        for view in self.engines.values_mut() {
            view.stale.extend(KINDS);
            view.listed.clear();
            view.patched = KINDS.into_iter().map(|kind| (kind, self.time)).collect();
        }
    }

    /// Returns the subjects that count as busy because a step about them failed a moment ago.
    pub(crate) fn unknown(&mut self) -> impl Iterator<Item = &Subject> {
        let engines = &self.engines;
        self.unknown.retain(|(_, since)| {
            engines.values().any(|view| {
                let seen = |kind| view.listed.get(kind).is_some_and(|begun| begun > since);
                view.answers().is_some() && !KINDS.iter().all(seen)
            })
        });
        self.unknown.iter().map(|(subject, _)| subject)
    }

    /// Returns whether all engines answer, so that all objects were observed.
    pub(crate) fn all_answer(&self) -> bool {
        self.engines.values().all(|view| view.answers().is_some())
    }

    /// Returns the engines that do not answer, and why.
    pub(crate) fn silent_engines(&self) -> BTreeMap<EngineKind, String> {
        let silent = self.engines.iter().filter_map(|(kind, view)| {
            let EngineHealth::Silent(why) = &view.health else {
                return None;
            };
            Some((*kind, why.clone()))
        });
        silent.collect()
    }

    /// Returns the part of the current state that engines know. Objects last seen on an engine that does not answer are
    /// left out: no decision may depend on them.
    pub(crate) fn current(&self) -> CurrentState {
        let label = self.branding.label(NETWORK_CONTAINER_LABEL);
        let mut current = CurrentState::default();
        for (engine, view) in &self.engines {
            current.engines.insert(*engine, view.health.clone());
            let Some(EngineView { objects, .. }) = view.answers() else {
                continue;
            };
            for container in &objects.containers {
                let service = CurrentService::from_container(container, &self.branding);
                current.services.extend(service.ok());
                let shared = container.labels.get(&label).and_then(|id| id.parse().ok());
                let shared = shared.map(|shared| (container.id.clone(), shared));
                current.network_containers.extend(shared);
            }
            current.images.extend_from_slice(&objects.images);
            current.volumes.extend_from_slice(&objects.volumes);
            current.networks.extend_from_slice(&objects.networks);
        }
        let shared = self.shares_api_network.iter().map(|engine| {
            let name = &self.branding.network;
            component_of(&self.branding, *engine, name, &BTreeMap::new())
        });
        current.networks.extend(shared);
        current
    }
}

/// Returns a volume or network of an engine, according to its labels.
pub(crate) fn component_of(
    branding: &Branding,
    engine: EngineKind,
    name: &str,
    labels: &BTreeMap<String, String>,
) -> CurrentComponent {
    let label = |name: &str| labels.get(&branding.label(name));
    CurrentComponent {
        engine,
        name: name.to_owned(),
        app: label("app-uuid").and_then(|uuid| uuid.parse().ok()),
        digest: label(CONFIG_DIGEST_LABEL).cloned(),
    }
}

impl EngineObjects {
    fn components_mut(&mut self, kind: ComponentKind) -> &mut Vec<CurrentComponent> {
        match kind {
            ComponentKind::Volume => &mut self.volumes,
            ComponentKind::Network => &mut self.networks,
        }
    }

    fn container_mut(&mut self, id: &ContainerId) -> Option<&mut Container> {
        let mut containers = self.containers.iter_mut();
        containers.find(|container| container.id == *id)
    }
}

impl EngineView {
    /// Returns `self` if the engine answers.
    fn answers(&self) -> Option<&Self> {
        (self.health == EngineHealth::Answers).then_some(self)
    }
}

#[cfg(test)]
mod tests;
