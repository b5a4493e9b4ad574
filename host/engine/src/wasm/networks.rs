//! Networks: who can reach whom. The addresses are all the loopback's; that a service reaches only
//! those that it shares a network with is kept by its own process, from the tables that are written
//! here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::{EngineKind, Network, NetworkConfig};
use serde::{Deserialize, Serialize};
use wasm_runner::record::{self, MEMBERS, Member, Members};

use super::record::{ContainerRecord, read_state};
use super::{Shared, folders};
use crate::{EngineError, EngineEvent};

/// The record, in the network's folder.
const NETWORK: &str = "network.json";

#[derive(Serialize, Deserialize)]
pub(super) struct NetworkRecord {
    name: String,
    pub(super) config: NetworkConfig,
}

impl Shared {
    pub(super) fn list_networks(&self) -> Vec<Network> {
        let records = self.network_records().into_values();
        records
            .filter(|network| self.scope.covers(&network.config.labels))
            .map(|network| Network {
                engine: EngineKind::Wasm,
                id: network.name.clone(),
                name: network.name,
                labels: network.config.labels,
            })
            .collect()
    }

    pub(super) fn make_network(
        &self,
        name: &str,
        config: NetworkConfig,
    ) -> Result<(), EngineError> {
        folders::fit_name("network", name)?;
        let _changing = self.change();
        let folder = self.folders.networks.join(name);
        if let Some(present) = folders::read::<NetworkRecord>(&folder.join(NETWORK)) {
            if present.config == config && self.scope.covers(&config.labels) {
                return Ok(());
            }
            return Err(EngineError::Conflict {
                what: format!("the network `{name}`"),
                hint: "remove it, or name yours otherwise".into(),
            });
        }
        let network = NetworkRecord {
            name: name.to_owned(),
            config,
        };
        folders::remove(&folder)
            .and_then(|()| {
                folders::put(&folder, |folder| {
                    folders::open_to_services(folder)?;
                    record::write(&folder.join(NETWORK), &network)
                })
            })
            .map_err(|error| EngineError::failed(format!("make the network `{name}`"), error))?;
        self.write_members();
        self.tell(EngineEvent::Other);
        Ok(())
    }

    pub(super) fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        folders::fit_name("network", name)?;
        let _changing = self.change();
        let ours = self.list_networks();
        if !ours.iter().any(|network| network.name == name) {
            return Ok(());
        }
        let mut containers = self.container_records().into_iter();
        let is_used = containers.any(|container| {
            container.networks(&self.scope).iter().any(|n| n == name)
                && read_state(&self.folders.container(&container.id)).is_served()
        });
        if is_used {
            return Err(EngineError::InUse {
                what: format!("the network `{name}`"),
            });
        }
        folders::remove(&self.folders.networks.join(name))
            .map_err(|error| EngineError::failed(format!("remove the network `{name}`"), error))?;
        self.tell(EngineEvent::Other);
        Ok(())
    }

    /// By name, ours or not.
    pub(super) fn network_records(&self) -> BTreeMap<String, NetworkRecord> {
        let names = folders::names(&self.folders.networks).into_iter();
        names
            .filter_map(|name| {
                let path = self.folders.networks.join(&name).join(NETWORK);
                Some((name, folders::read(&path)?))
            })
            .collect()
    }

    pub(super) fn members_file(&self, network: &str) -> PathBuf {
        self.folders.networks.join(network).join(MEMBERS)
    }

    /// Writes every network's table of members anew, from the containers. Called with each change of
    /// a container's networks or names, and at the start.
    pub(super) fn write_members(&self) {
        let containers = self.container_records();
        let member = |container: &ContainerRecord, names| Member {
            address: container.address,
            folder: self.folders.container(&container.id),
            names,
        };
        for name in self.network_records().keys() {
            let mut members = Vec::new();
            for container in &containers {
                if !container.networks(&self.scope).contains(name) {
                    continue;
                }
                members.push(member(container, container.names_in(name)));
                // Who shares the network of a member has its address, and no name of its own.
                let shares =
                    |other: &&ContainerRecord| other.shares.as_ref() == Some(&container.id);
                members.extend(
                    containers
                        .iter()
                        .filter(shares)
                        .map(|c| member(c, Vec::new())),
                );
            }
            let (path, members) = (self.members_file(name), Members(members));
            if record::read::<Members>(&path).ok().flatten().as_ref() == Some(&members) {
                continue;
            }
            if let Err(error) = record::write_for_services(&path, &members) {
                tracing::error!(%error, "failed to write `{}`", path.display());
            }
        }
    }
}
