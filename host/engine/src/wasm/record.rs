//! The engine's own record of a container: everything that it was created from.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use model::{ContainerId, EngineImageId, NetworkMode, ServiceConfig};
use serde::{Deserialize, Serialize};
use wasm_service::record::ServiceUser;

use super::folders;
use crate::Ownership;

/// The file's name, in the container's folder.
pub(super) const CONTAINER: &str = "container.json";

/// The period that CPU time in `cpu_quota` refers to, in microseconds.
const QUOTA_PERIOD: u64 = 100_000;

/// One container, as it was created.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ContainerRecord {
    pub(super) id: ContainerId,
    pub(super) name: String,
    pub(super) image_id: EngineImageId,
    pub(super) config: ServiceConfig,
    /// Not part of `config`'s serialized form.
    #[serde(default)]
    pub(super) nano_cpus: i64,
    #[serde(default)]
    pub(super) init_environment: BTreeMap<String, String>,
    /// Its own loopback address, or that of the container whose network it shares.
    pub(super) address: Ipv4Addr,
    /// The container whose network it shares.
    #[serde(default)]
    pub(super) shares: Option<ContainerId>,
    /// The user of its process; `None` until it is started while users can be assigned.
    #[serde(default)]
    pub(super) user: Option<ServiceUser>,
    /// Milliseconds since the epoch.
    pub(super) created_at_ms: i64,
    /// It was stopped by a request, and stays stopped until a request starts it.
    #[serde(default)]
    pub(super) stopped: bool,
}

impl ContainerRecord {
    /// Returns `None` if there is none, or a damaged one.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let record: Self = folders::read(&folder.join(CONTAINER))?;
        // A record in another folder than its own would be used under the wrong name.
        let name = folder.file_name().and_then(|name| name.to_str());
        if name != Some(record.id.as_str()) {
            tracing::warn!(
                path = %folder.display(),
                "skipping the misplaced record in `{}`",
                folder.display()
            );
            return None;
        }
        Some(record)
    }

    /// Returns the limit in bytes for the memories and tables of a service, all of its memories together. If its
    /// compose file sets none, it is half of the machine's memory.
    pub(super) fn memory_limit(&self) -> u64 {
        match self.config.mem_limit {
            0 => half_of_memory(),
            limit => limit,
        }
    }

    /// Returns CPUs in billionths; 0 is no limit.
    pub(super) fn cpu_limit(&self) -> u64 {
        let by_cpus = u64::try_from(self.nano_cpus).unwrap_or(0);
        let by_quota = u64::try_from(self.config.cpu_quota).unwrap_or(0);
        match (by_cpus, by_quota) {
            (0, quota) => quota.saturating_mul(1_000_000_000 / QUOTA_PERIOD),
            (cpus, _) => cpus,
        }
    }

    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        let mut environment = self.init_environment.clone();
        environment.extend(self.config.environment.clone());
        environment
    }

    /// Returns the names of the networks that it is in. The bridge to the API does not count:
    /// services do not meet in it.
    pub(super) fn networks(&self, ownership: &Ownership) -> Vec<String> {
        if matches!(
            self.config.network_mode,
            NetworkMode::Host | NetworkMode::None | NetworkMode::Service(_)
        ) {
            return Vec::new();
        }
        let mut names: Vec<String> = self.config.networks.keys().cloned().collect();
        if let NetworkMode::Network(name) = &self.config.network_mode
            && !names.contains(name)
        {
            names.push(name.clone());
        }
        names.retain(|name| *name != ownership.branding.network);
        names
    }

    pub(super) fn is_in(&self, network: &str, ownership: &Ownership) -> bool {
        self.networks(ownership).iter().any(|name| name == network)
    }

    /// Returns the names that other services of `network` use for it.
    pub(super) fn names_in(&self, network: &str) -> Vec<String> {
        let attachment = self.config.networks.get(network);
        let mut names = attachment.map_or_else(Vec::new, |a| a.aliases.clone());
        names.push(self.name.clone());
        names.push(self.id.as_str().chars().take(12).collect());
        if !self.config.hostname.is_empty() {
            names.push(self.config.hostname.clone());
        }
        names.sort();
        names.dedup();
        names
    }
}

fn half_of_memory() -> u64 {
    let system = rustix::system::sysinfo();
    #[allow(
        clippy::useless_conversion,
        reason = "the system's numbers are narrower on 32 bits"
    )]
    let total = u64::from(system.totalram);
    total.saturating_mul(u64::from(system.mem_unit)) / 2
}
