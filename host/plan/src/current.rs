//! The observed state: everything that a plan may depend on.

mod host;
mod os;

use std::collections::{BTreeMap, BTreeSet};

use device_types::Moment;
use device_types::plan::Blocker;
use model::{
    AppUuid, Commit, ContainerId, CurrentService, DesiredNetwork, EngineKind, Image, ImageRef,
};

use crate::component::ComponentKind;
use crate::replaced_keys::ReplacedKeys;
use crate::subject::Subject;

pub use self::host::CurrentHost;
pub use self::os::{CurrentOs, OsAttempt, OsPhase, OsStatus, OsVerdict};

/// The state of the device at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CurrentState {
    /// The engines that this device has. Nothing is planned on one that does not answer, and nothing that may exist on
    /// it is created elsewhere.
    pub engines: BTreeMap<EngineKind, EngineHealth>,
    /// The engine for objects that are not tied to an image.
    pub default_engine: Option<EngineKind>,
    /// All of our containers whose service is known, on all engines that answer.
    pub services: Vec<CurrentService>,
    /// Containers that share the network stack of another container, and the id of that container.
    pub network_containers: BTreeMap<ContainerId, ContainerId>,
    /// All images of the engines that answer, whoever pulled them.
    pub images: Vec<Image>,
    /// The engines that the registry reported for images that no engine holds yet.
    pub image_kinds: BTreeMap<ImageRef, EngineKind>,
    /// The images that this supervisor pulled: the only ones that it removes.
    pub recorded_images: BTreeSet<ImageRef>,
    /// Images that stay although no target names them: those of releases to which the device may return
    /// (docs/spec/device.md#release-health).
    pub kept_images: BTreeSet<ImageRef>,
    /// Our volumes on all engines that answer.
    pub volumes: Vec<CurrentComponent>,
    /// Our networks on all engines that answer, including the API's network, whoever created it.
    pub networks: Vec<CurrentComponent>,
    /// The network through which services reach the device's API: created on each engine that runs a service that
    /// requests it, and never removed, since the API listens on its gateway.
    pub api_network: Option<DesiredNetwork>,
    /// The release of each app that runs completely.
    pub commits: BTreeMap<AppUuid, Commit>,
    /// Apps whose update locks are held.
    pub locks: BTreeSet<AppUuid>,
    /// Containers that the supervisor itself stopped: the only exited ones that it starts again.
    pub stopped: BTreeSet<ContainerId>,
    /// Containers that were stopped over the API: they stay stopped until somebody starts them, over
    /// the API or by starting the supervisor (docs/spec/device.md#stopped-services).
    pub held: BTreeSet<ContainerId>,
    /// Containers that are recreated although they match the target (docs/spec/device.md#restart).
    pub recreated: BTreeSet<ContainerId>,
    /// Apps whose containers, networks and volumes are all removed before they are created again
    /// (docs/spec/device.md#purge).
    pub purged: BTreeSet<AppUuid>,
    /// Apps that are restored to their previous state, not to the target: nothing is recorded of them, and the images
    /// of the target stay (docs/spec/device.md#purge).
    pub restored: BTreeSet<AppUuid>,
    /// Services whose containers get a new API key with the next update.
    pub replaced_keys: ReplacedKeys,
    /// The host itself.
    pub host: CurrentHost,
    /// Its operating system.
    pub os: CurrentOs,
    /// In local mode: images and volumes of apps that are removed are kept (docs/spec/device.md#local-mode).
    pub local_mode: bool,
    /// The subjects of the steps in flight.
    pub busy: BTreeSet<Subject>,
    /// The subjects that have failed since the target was set and have not succeeded since.
    pub failed: BTreeMap<Subject, Failure>,
}

/// The availability of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineHealth {
    /// It answers: its objects were observed, and steps can use it.
    Answers,
    /// It does not answer; the reason.
    Silent(String),
}

/// The last failure of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error of the step, in one sentence.
    pub reason: String,
    /// Whether it is still too early for the next attempt.
    pub held: bool,
    /// The time of the next attempt.
    pub retry_at: Moment,
    /// The number of failures in a row.
    pub failures: u32,
    /// The plugin that postpones it, if it is a postponement and not a failure.
    pub postponed_by: Option<String>,
    /// The container that its engine keeps refusing to start: only another one in its place can run.
    pub stuck_container: Option<ContainerId>,
}

impl Failure {
    /// Returns the blocker for this failure.
    #[must_use]
    pub fn blocker(&self) -> Blocker {
        if let Some(plugin) = &self.postponed_by {
            return Blocker::UpdateGate {
                plugin: plugin.clone(),
                until: self.retry_at,
                reason: self.reason.clone(),
            };
        }
        Blocker::BackOff {
            until: self.retry_at,
            failures: self.failures,
            reason: self.reason.clone(),
        }
    }
}

/// One volume or network of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentComponent {
    /// The engine that has it.
    pub engine: EngineKind,
    /// Its name at the engine.
    pub name: String,
    /// The app; absent if its labels do not say.
    pub app: Option<AppUuid>,
    /// The digest of its configuration.
    pub digest: Option<String>,
}

impl CurrentState {
    /// Returns the volumes or the networks.
    #[must_use]
    pub fn components(&self, kind: ComponentKind) -> &[CurrentComponent] {
        match kind {
            ComponentKind::Volume => &self.volumes,
            ComponentKind::Network => &self.networks,
        }
    }

    pub(crate) fn components_mut(&mut self, kind: ComponentKind) -> &mut Vec<CurrentComponent> {
        match kind {
            ComponentKind::Volume => &mut self.volumes,
            ComponentKind::Network => &mut self.networks,
        }
    }

    /// Returns the volume or network with this name on `engine`.
    pub(crate) fn component(
        &self,
        kind: ComponentKind,
        engine: EngineKind,
        name: &str,
    ) -> Option<&CurrentComponent> {
        let mut components = self.components(kind).iter();
        components.find(|component| component.engine == engine && component.name == name)
    }

    /// Returns whether all engines answer, so that all objects were observed.
    #[must_use]
    pub fn all_answer(&self) -> bool {
        let mut engines = self.engines.values();
        engines.all(|health| *health == EngineHealth::Answers)
    }

    pub(crate) fn answers(&self, engine: EngineKind) -> bool {
        self.engines.get(&engine) == Some(&EngineHealth::Answers)
    }

    pub(crate) fn is_busy(&self, subject: &Subject) -> bool {
        self.busy.contains(subject)
    }

    /// Returns the engines that do not answer, each with the resulting blocker.
    pub(crate) fn silent_engines(&self) -> impl Iterator<Item = (EngineKind, Blocker)> {
        self.engines.iter().filter_map(|(engine, health)| {
            let EngineHealth::Silent(reason) = health else {
                return None;
            };
            let (engine, reason) = (*engine, reason.clone());
            Some((engine, Blocker::EngineSilent { engine, reason }))
        })
    }
}
