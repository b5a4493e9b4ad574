//! What the engines hold, as far as it is known: the answer of the last listing, with the effects of
//! our own finished steps put in, so that the next step need not wait for a new listing.
//!
//! A listing that was begun before such an effect is thrown away for that kind of object, since it may
//! not show it. What an engine says always wins in the end: after the last step everything that was
//! put in is listed again.

use std::collections::{BTreeMap, BTreeSet};

use engine::Engines;
use model::{
    Branding, CONFIG_DIGEST_LABEL, Container, ContainerId, ContainerState, CurrentService,
    EngineKind, Image, ImageRef, Network, Volume,
};
use plan::{ComponentKind, CurrentComponent, CurrentState, EngineHealth, Subject};

/// The label, below the branding's namespace, of a container that shares the network stack of another:
/// the id of that one. It is no part of the configuration that is compared.
pub(crate) const NETWORK_CONTAINER_LABEL: &str = "network-container";

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ObjectKind {
    Containers,
    Images,
    Volumes,
    Networks,
}

pub(crate) const KINDS: [ObjectKind; 4] = [
    ObjectKind::Containers,
    ObjectKind::Images,
    ObjectKind::Volumes,
    ObjectKind::Networks,
];

/// One engine's objects.
#[derive(Debug, Clone)]
pub(crate) struct EngineView {
    pub health: EngineHealth,
    pub containers: Vec<Container>,
    pub images: Vec<Image>,
    pub volumes: Vec<Volume>,
    pub networks: Vec<Network>,
    /// To be listed.
    stale: BTreeSet<ObjectKind>,
    /// The effect of a step was put in since the last listing.
    unverified: BTreeSet<ObjectKind>,
    /// When (in [`View::time`]) the last listing of a kind was begun, and the last effect put in.
    listed: BTreeMap<ObjectKind, u64>,
    patched: BTreeMap<ObjectKind, u64>,
}

/// All engines' objects.
#[derive(Debug)]
pub(crate) struct View {
    pub engines: BTreeMap<EngineKind, EngineView>,
    branding: Branding,
    /// Engines whose network of the API is another supervisor's, and therefore not listed.
    shares_api_network: BTreeSet<EngineKind>,
    /// Counts listings and effects.
    time: u64,
    /// Subjects of failed steps, whose effect is unknown until everything was listed after that time.
    unknown: Vec<(Subject, u64)>,
}

/// A listing, of the kinds that were asked for.
#[derive(Debug)]
pub(crate) struct Listing {
    pub engine: EngineKind,
    pub begun: u64,
    pub containers: Option<Vec<Container>>,
    pub images: Option<Vec<Image>>,
    pub volumes: Option<Vec<Volume>>,
    pub networks: Option<Vec<Network>>,
    /// Why a list could not be had.
    pub failure: Option<String>,
}

impl Listing {
    /// A listing that came to nothing.
    pub(crate) fn failed(engine: EngineKind, begun: u64, why: &str) -> Self {
        Listing {
            engine,
            begun,
            containers: None,
            images: None,
            volumes: None,
            networks: None,
            failure: Some(why.to_owned()),
        }
    }
}

/// The effect of a step.
#[derive(Debug)]
pub(crate) enum Effect {
    Pulled(Image),
    ImageRemoved(EngineKind, ImageRef),
    VolumeMade(Volume),
    NetworkMade(Network),
    ComponentRemoved(ComponentKind, EngineKind, String),
    ContainerMade(Container),
    ContainerIs(EngineKind, ContainerId, ContainerState),
    ContainerNamed(EngineKind, ContainerId, String),
    ContainerRemoved(EngineKind, ContainerId),
    /// The network of the API is there, and another supervisor's.
    ApiNetworkIsShared(EngineKind),
}

impl View {
    pub(crate) fn new(engines: &Engines, branding: Branding) -> Self {
        let unknown = || EngineView {
            health: EngineHealth::Answers,
            containers: Vec::new(),
            images: Vec::new(),
            volumes: Vec::new(),
            networks: Vec::new(),
            stale: KINDS.into_iter().collect(),
            unverified: BTreeSet::new(),
            listed: BTreeMap::new(),
            patched: BTreeMap::new(),
        };
        View {
            engines: engines
                .all()
                .map(|engine| (engine.kind(), unknown()))
                .collect(),
            branding,
            shares_api_network: BTreeSet::new(),
            time: 0,
            unknown: Vec::new(),
        }
    }

    /// Whether every engine was listed once, or is known not to answer.
    pub(crate) fn is_known(&self) -> bool {
        self.engines.values().all(|view| {
            view.answers()
                .is_none_or(|_| view.listed.len() == KINDS.len())
        })
    }

    pub(crate) fn mark(&mut self, engine: EngineKind, kinds: &[ObjectKind]) {
        if let Some(view) = self.engines.get_mut(&engine) {
            view.stale.extend(kinds);
        }
    }

    /// Asks for a listing of all that was put in and never listed; `false` where there is no such.
    pub(crate) fn verify(&mut self) -> bool {
        let mut any = false;
        for view in self.engines.values_mut() {
            any |= !view.unverified.is_empty();
            let unverified = std::mem::take(&mut view.unverified);
            view.stale.extend(unverified);
        }
        any
    }

    /// The kinds to list on `engine`, and the time at which that begins; `None` where there is nothing
    /// to list.
    pub(crate) fn begin(&mut self, engine: EngineKind) -> Option<(BTreeSet<ObjectKind>, u64)> {
        let view = self.engines.get_mut(&engine)?;
        if view.stale.is_empty() {
            return None;
        }
        self.time += 1;
        Some((std::mem::take(&mut view.stale), self.time))
    }

    /// Takes what was listed. A failure leaves what was known, marked to be listed again.
    pub(crate) fn listed(&mut self, listing: Listing) {
        let Some(view) = self.engines.get_mut(&listing.engine) else {
            return;
        };
        let begun = listing.begun;
        if let Some(why) = listing.failure {
            view.health = EngineHealth::Silent(why);
            view.stale.extend(KINDS);
            return;
        }
        let EngineView {
            containers,
            images,
            volumes,
            networks,
            listed,
            patched,
            stale,
            unverified,
            ..
        } = view;
        let mut is_recent = |kind: ObjectKind| {
            let recent = patched.get(&kind).is_none_or(|patched| *patched < begun);
            if recent {
                listed.insert(kind, begun);
                unverified.remove(&kind);
            } else {
                stale.insert(kind);
            }
            recent
        };
        if let Some(found) = listing
            .containers
            .filter(|_| is_recent(ObjectKind::Containers))
        {
            *containers = found;
        }
        if let Some(found) = listing.images.filter(|_| is_recent(ObjectKind::Images)) {
            *images = found;
        }
        if let Some(found) = listing.volumes.filter(|_| is_recent(ObjectKind::Volumes)) {
            *volumes = found;
        }
        if let Some(found) = listing.networks.filter(|_| is_recent(ObjectKind::Networks)) {
            *networks = found;
        }
        if view.health != EngineHealth::Answers {
            view.health = EngineHealth::Answers;
        }
    }

    /// Says that the effect of a step about `subject` is unknown: it stays busy until everything has
    /// been listed.
    pub(crate) fn invalidate(&mut self, subject: Subject) {
        self.time += 1;
        self.unknown.push((subject, self.time));
        for view in self.engines.values_mut() {
            view.stale.extend(KINDS);
        }
    }

    /// Knows nothing any more; a listing that is under way does not count.
    pub(crate) fn invalidate_all(&mut self) {
        self.time += 1;
        for view in self.engines.values_mut() {
            view.stale.extend(KINDS);
            view.listed.clear();
            view.patched = KINDS.into_iter().map(|kind| (kind, self.time)).collect();
        }
    }

    /// The subjects that are to be treated as busy since a step about them failed a moment ago.
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

    /// Puts the effect of a finished step in.
    pub(crate) fn apply(&mut self, effect: Effect) {
        self.time += 1;
        let time = self.time;
        let (engine, kind) = effect.about();
        let Some(view) = self.engines.get_mut(&engine) else {
            return;
        };
        view.patched.insert(kind, time);
        view.unverified.insert(kind);
        match effect {
            Effect::ApiNetworkIsShared(engine) => {
                self.shares_api_network.insert(engine);
            }
            Effect::Pulled(image) => {
                // A reference names one image: the one that had it before has lost it.
                for held in &mut view.images {
                    held.references
                        .retain(|held| !image.references.contains(held));
                }
                view.images.retain(|held| held.id != image.id);
                view.images.push(image);
            }
            Effect::ImageRemoved(_, image) => {
                for held in &mut view.images {
                    held.references.retain(|held| *held != image);
                }
                view.images.retain(|held| !held.references.is_empty());
            }
            Effect::VolumeMade(volume) => {
                view.volumes.retain(|held| held.name != volume.name);
                view.volumes.push(volume);
            }
            Effect::NetworkMade(network) => {
                view.networks.retain(|held| held.name != network.name);
                view.networks.push(network);
            }
            Effect::ComponentRemoved(ComponentKind::Volume, _, name) => {
                view.volumes.retain(|held| held.name != name);
            }
            Effect::ComponentRemoved(ComponentKind::Network, _, name) => {
                view.networks.retain(|held| held.name != name);
            }
            Effect::ContainerMade(container) => {
                view.containers.retain(|held| held.id != container.id);
                view.containers.push(container);
            }
            Effect::ContainerIs(_, id, state) => {
                if let Some(held) = view.containers.iter_mut().find(|held| held.id == id) {
                    held.state = state;
                }
            }
            Effect::ContainerNamed(_, id, name) => {
                if let Some(held) = view.containers.iter_mut().find(|held| held.id == id) {
                    held.name = name;
                }
            }
            Effect::ContainerRemoved(_, id) => view.containers.retain(|held| held.id != id),
        }
    }

    /// All containers of services, known or not to be there now.
    pub(crate) fn services(&self) -> impl Iterator<Item = CurrentService> {
        let containers = self.engines.values().flat_map(|view| &view.containers);
        // One that does not say whose it is is nobody's: not ours to touch.
        containers.filter_map(|c| CurrentService::from_container(c, &self.branding).ok())
    }

    pub(crate) fn container(&self, id: &ContainerId) -> Option<&Container> {
        let mut containers = self.engines.values().flat_map(|view| &view.containers);
        containers.find(|container| container.id == *id)
    }

    /// The part of the current state that engines know. What an engine that does not answer held last
    /// is left out: nothing may be decided by it.
    pub(crate) fn current(&self) -> CurrentState {
        let answering = || self.engines.values().filter_map(EngineView::answers);
        let label = self.branding.label(NETWORK_CONTAINER_LABEL);
        let containers = || answering().flat_map(|view| &view.containers);
        CurrentState {
            engines: self
                .engines
                .iter()
                .map(|(kind, view)| (*kind, view.health.clone()))
                .collect(),
            services: containers()
                .filter_map(|c| CurrentService::from_container(c, &self.branding).ok())
                .collect(),
            network_containers: containers()
                .filter_map(|c| Some((c.id.clone(), c.labels.get(&label)?.parse().ok()?)))
                .collect(),
            images: answering().flat_map(|view| view.images.clone()).collect(),
            volumes: answering()
                .flat_map(|view| &view.volumes)
                .map(|volume| self.component(volume.engine, &volume.name, &volume.labels))
                .collect(),
            networks: answering()
                .flat_map(|view| &view.networks)
                .map(|network| self.component(network.engine, &network.name, &network.labels))
                .chain(self.shares_api_network.iter().map(|engine| {
                    self.component(*engine, &self.branding.network, &BTreeMap::new())
                }))
                .collect(),
            ..CurrentState::default()
        }
    }

    fn component(
        &self,
        engine: EngineKind,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> CurrentComponent {
        let label = |name: &str| labels.get(&self.branding.label(name));
        CurrentComponent {
            engine,
            name: name.to_owned(),
            app: label("app-uuid").and_then(|uuid| uuid.parse().ok()),
            digest: label(CONFIG_DIGEST_LABEL).cloned(),
        }
    }
}

impl EngineView {
    /// Itself, where the engine answers.
    fn answers(&self) -> Option<&Self> {
        (self.health == EngineHealth::Answers).then_some(self)
    }
}

impl Effect {
    fn about(&self) -> (EngineKind, ObjectKind) {
        match self {
            Effect::Pulled(image) => (image.engine, ObjectKind::Images),
            Effect::ImageRemoved(engine, _) => (*engine, ObjectKind::Images),
            Effect::VolumeMade(volume) => (volume.engine, ObjectKind::Volumes),
            Effect::NetworkMade(network) => (network.engine, ObjectKind::Networks),
            Effect::ApiNetworkIsShared(engine) => (*engine, ObjectKind::Networks),
            Effect::ComponentRemoved(kind, engine, _) => match kind {
                ComponentKind::Volume => (*engine, ObjectKind::Volumes),
                ComponentKind::Network => (*engine, ObjectKind::Networks),
            },
            Effect::ContainerMade(container) => (container.engine, ObjectKind::Containers),
            Effect::ContainerIs(engine, ..)
            | Effect::ContainerNamed(engine, ..)
            | Effect::ContainerRemoved(engine, _) => (*engine, ObjectKind::Containers),
        }
    }
}
