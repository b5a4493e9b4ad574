//! Volumes and networks, which are planned in the same way.

use std::collections::BTreeMap;

use model::{DesiredApp, DesiredNetwork, DesiredObject, DesiredVolume};
use strum::VariantArray;

/// The kind of a component: a volume or a network.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display, VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum ComponentKind {
    /// A volume. Removing it deletes the data in it.
    Volume,
    /// A network.
    Network,
}

/// A volume or network of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesiredComponent {
    /// A volume.
    Volume(DesiredVolume),
    /// A network.
    Network(DesiredNetwork),
}

impl DesiredComponent {
    /// Returns whether this is a volume or a network.
    #[must_use]
    pub fn kind(&self) -> ComponentKind {
        match self {
            DesiredComponent::Volume(_) => ComponentKind::Volume,
            DesiredComponent::Network(_) => ComponentKind::Network,
        }
    }

    /// Returns its name at the engine.
    #[must_use]
    pub fn engine_name(&self) -> &str {
        match self {
            DesiredComponent::Volume(volume) => &volume.engine_name,
            DesiredComponent::Network(network) => &network.engine_name,
        }
    }

    /// Returns the digest of its configuration.
    #[must_use]
    pub fn digest(&self) -> &str {
        match self {
            DesiredComponent::Volume(volume) => &volume.digest,
            DesiredComponent::Network(network) => &network.digest,
        }
    }
}

/// Returns the names and digests of the volumes, or of the networks, of `app`.
pub(crate) fn components_of(
    app: &DesiredApp,
    kind: ComponentKind,
) -> Box<dyn Iterator<Item = (&str, &str)> + '_> {
    fn name_and_digest<C>(object: &DesiredObject<C>) -> (&str, &str) {
        (&object.engine_name, &object.digest)
    }
    match kind {
        ComponentKind::Volume => Box::new(app.volumes.values().map(name_and_digest)),
        ComponentKind::Network => Box::new(app.networks.values().map(name_and_digest)),
    }
}

/// Returns whether `app` has a volume, or a network, with this name at the engine.
#[must_use]
pub fn has_component(app: &DesiredApp, kind: ComponentKind, name: &str) -> bool {
    components_of(app, kind).any(|(own, _)| own == name)
}

/// Returns the configuration from which the volume, or the network, of `app` with this name is
/// created.
pub(crate) fn find_component(
    app: &DesiredApp,
    kind: ComponentKind,
    name: &str,
) -> Option<DesiredComponent> {
    fn find<C: Clone>(
        objects: &BTreeMap<String, DesiredObject<C>>,
        name: &str,
    ) -> Option<DesiredObject<C>> {
        let mut objects = objects.values();
        objects.find(|object| object.engine_name == name).cloned()
    }
    match kind {
        ComponentKind::Volume => find(&app.volumes, name).map(DesiredComponent::Volume),
        ComponentKind::Network => find(&app.networks, name).map(DesiredComponent::Network),
    }
}
