//! Networks: who can reach whom. All addresses are on the loopback interface. Each service's own
//! process restricts it to the services that it shares a network with, according to the tables that
//! are written here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use model::{ContainerId, EngineKind, Network, NetworkConfig};
use serde::{Deserialize, Serialize};
use wasm_service::record::{self, MEMBERS, Member, Members};

use super::record::ContainerRecord;
use super::{Wasm, WasmState, folders};
use crate::{EngineError, EngineEvent, NetworkSpec, Networks};

/// The record, in the network's folder.
const NETWORK: &str = "network.json";

#[derive(Serialize, Deserialize)]
pub(super) struct NetworkRecord {
    name: String,
    pub(super) config: NetworkConfig,
}

// Reads like that of `Volumes`: both only pass arguments, which are of other types, to a thread that may wait
// for the disk.
#[async_trait]
impl Networks for Wasm {
    async fn networks(&self) -> Result<Vec<Network>, EngineError> {
        self.blocking(|shared| Ok(shared.list_networks())).await
    }

    async fn create_network(&self, spec: &NetworkSpec<'_>) -> Result<(), EngineError> {
        let (name, config) = (spec.name.to_owned(), spec.config.clone());
        self.blocking(move |shared| shared.make_network(&name, config))
            .await
    }

    async fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        let name = name.to_owned();
        self.blocking(move |shared| shared.remove_network(&name))
            .await
    }
}

impl WasmState {
    fn list_networks(&self) -> Vec<Network> {
        self.network_records()
            .map(|(_, network)| network)
            .filter(|network| self.ownership.covers(&network.config.labels))
            .map(|network| Network {
                engine: EngineKind::Wasm,
                id: network.name.clone(),
                name: network.name,
                labels: network.config.labels,
            })
            .collect()
    }

    fn make_network(&self, name: &str, config: NetworkConfig) -> Result<(), EngineError> {
        folders::fit_name("network", name)?;
        let _changing = self.changing.lock();
        let folder = self.folders.networks.join(name);
        if let Some(present) = folders::read::<NetworkRecord>(&folder.join(NETWORK)) {
            if present.config == config && self.ownership.covers(&config.labels) {
                return Ok(());
            }
            return Err(folders::name_taken("network", name));
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
            .map_err(|error| EngineError::failed(format!("create the network `{name}`"), error))?;
        self.write_members(name);
        self.emit(EngineEvent::Other);
        Ok(())
    }

    fn remove_network(&self, name: &str) -> Result<(), EngineError> {
        folders::fit_name("network", name)?;
        let _changing = self.changing.lock();
        let network = self.network_record(name);
        if !network.is_some_and(|network| self.ownership.covers(&network.config.labels)) {
            return Ok(());
        }
        let mut containers = self.containers.records().into_iter();
        let is_used = containers.any(|container| {
            container.is_in(name, &self.ownership) && self.state(&container.id).is_served()
        });
        if is_used {
            return Err(EngineError::in_use(format!("the network `{name}`")));
        }
        folders::remove(&self.folders.networks.join(name))
            .map_err(|error| EngineError::failed(format!("remove the network `{name}`"), error))?;
        self.emit(EngineEvent::Other);
        Ok(())
    }

    /// Returns the records by name, ours or not.
    fn network_records(&self) -> impl Iterator<Item = (String, NetworkRecord)> {
        let names = folders::names(&self.folders.networks).into_iter();
        names.filter_map(|name| {
            let path = self.folders.networks.join(&name).join(NETWORK);
            Some((name, folders::read(&path)?))
        })
    }

    /// Returns one network's record, ours or not.
    pub(super) fn network_record(&self, name: &str) -> Option<NetworkRecord> {
        folders::fit_name("network", name).ok()?;
        folders::read(&self.folders.networks.join(name).join(NETWORK))
    }

    pub(super) fn members_file(&self, network: &str) -> PathBuf {
        self.folders.networks.join(network).join(MEMBERS)
    }

    /// Rewrites every network's table of members, at the start: a kill may have happened between a change and its
    /// tables.
    pub(super) fn write_all_members(&self) {
        for (name, _) in self.network_records() {
            self.write_members(&name);
        }
    }

    /// Writes the tables of the networks that a container is in, after it was created, removed or renamed.
    pub(super) fn write_members_beside(&self, record: &ContainerRecord) {
        let lender = record.shares.as_ref();
        let lender = lender.and_then(|other| self.containers.record(other));
        let lent = lender.map(|lender| lender.networks(&self.ownership));
        let mut networks = record.networks(&self.ownership);
        networks.extend(lent.unwrap_or_default());
        for name in networks {
            if self.network_record(&name).is_some() {
                self.write_members(&name);
            }
        }
    }

    /// Rewrites a network's table of members, from the containers.
    fn write_members(&self, network: &str) {
        let containers = self.containers.records();
        let member = |container: &ContainerRecord, names| Member {
            address: container.address,
            folder: self.folders.container(&container.id),
            names,
        };
        let mut borrowers: BTreeMap<&ContainerId, Vec<&ContainerRecord>> = BTreeMap::new();
        for container in &containers {
            if let Some(lender) = &container.shares {
                borrowers.entry(lender).or_default().push(container);
            }
        }
        let mut members = Vec::new();
        for container in &containers {
            if !container.is_in(network, &self.ownership) {
                continue;
            }
            members.push(member(container, container.names_in(network)));
            // A container that shares the network of a member has that member's address, but no
            // name of its own.
            let borrowers = borrowers.get(&container.id).into_iter().flatten();
            members.extend(borrowers.map(|borrower| member(borrower, Vec::new())));
        }
        let (path, members) = (self.members_file(network), Members(members));
        if record::read::<Members>(&path).ok().flatten().as_ref() == Some(&members) {
            return;
        }
        if let Err(error) = record::write_for_services(&path, &members) {
            tracing::error!(%error, path = %path.display(), "failed to write `{}`", path.display());
        }
    }
}
