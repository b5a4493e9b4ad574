//! Whether the volumes and networks of an app exist as its target describes them.

use std::collections::BTreeSet;

use model::{DesiredService, EngineKind, Mount, NetworkMode};
use strum::VariantArray;

use crate::app::App;
use crate::component::{ComponentKind, components_of};
use crate::current::CurrentState;

/// The state of a volume or network on an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComponentState {
    Absent,
    /// Its configuration differs: it is removed once nothing uses it, and created again.
    Changed,
    Right,
}

/// Compares the component `name` on `engine` with its desired configuration.
pub(crate) fn compare(
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
}
