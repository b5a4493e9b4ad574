//! Volumes and networks, which are planned alike.

use std::fmt;

use model::{DesiredApp, DesiredNetwork, DesiredVolume};

/// Whether something is a volume or a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentKind {
    /// A volume. Removing it loses the data in it.
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
    /// Whether something is a volume or a network.
    #[must_use]
    pub fn kind(&self) -> ComponentKind {
        match self {
            DesiredComponent::Volume(_) => ComponentKind::Volume,
            DesiredComponent::Network(_) => ComponentKind::Network,
        }
    }

    /// Its name at the engine.
    #[must_use]
    pub fn engine_name(&self) -> &str {
        match self {
            DesiredComponent::Volume(volume) => &volume.engine_name,
            DesiredComponent::Network(network) => &network.engine_name,
        }
    }

    /// The digest of its configuration.
    #[must_use]
    pub fn digest(&self) -> &str {
        match self {
            DesiredComponent::Volume(volume) => &volume.digest,
            DesiredComponent::Network(network) => &network.digest,
        }
    }
}

/// The names and digests of the volumes, or of the networks, of `app`.
pub(crate) fn components_of(
    app: &DesiredApp,
    kind: ComponentKind,
) -> Box<dyn Iterator<Item = (&str, &str)> + '_> {
    match kind {
        ComponentKind::Volume => {
            let volumes = app.volumes.values();
            Box::new(volumes.map(|it| (it.engine_name.as_str(), it.digest.as_str())))
        }
        ComponentKind::Network => {
            let networks = app.networks.values();
            Box::new(networks.map(|it| (it.engine_name.as_str(), it.digest.as_str())))
        }
    }
}

/// Whether `app` has a volume, or a network, with this name of the engine's.
#[must_use]
pub fn has_component(app: &DesiredApp, kind: ComponentKind, name: &str) -> bool {
    components_of(app, kind).any(|(own, _)| own == name)
}

/// What the volume, or the network, of `app` with this name is made from.
pub(crate) fn find_component(
    app: &DesiredApp,
    kind: ComponentKind,
    name: &str,
) -> Option<DesiredComponent> {
    match kind {
        ComponentKind::Volume => {
            let found = app.volumes.values().find(|it| it.engine_name == name)?;
            Some(DesiredComponent::Volume(found.clone()))
        }
        ComponentKind::Network => {
            let found = app.networks.values().find(|it| it.engine_name == name)?;
            Some(DesiredComponent::Network(found.clone()))
        }
    }
}

impl ComponentKind {
    /// Both kinds.
    pub const ALL: [ComponentKind; 2] = [ComponentKind::Volume, ComponentKind::Network];
}

impl fmt::Display for ComponentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ComponentKind::Volume => "volume",
            ComponentKind::Network => "network",
        })
    }
}
