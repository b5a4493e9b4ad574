//! What the device should run, resolved: names are the engine's, variables and labels are in, and
//! nothing is left to look up. The planner compares this with what the engines hold.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    AppId, AppUuid, Commit, ImageId, IpamPool, ReleaseId, ServiceConfig, ServiceId, ServiceKey,
    ServiceName,
};

/// What all apps of the device should run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DesiredState {
    pub apps: BTreeMap<AppUuid, DesiredApp>,
}

/// One app. An app without a release has no services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredApp {
    pub id: AppId,
    pub uuid: AppUuid,
    pub name: String,
    pub commit: Option<Commit>,
    pub release: Option<ReleaseId>,
    /// Host apps and the supervisor's own: shown, never run or removed.
    pub not_ours: bool,
    /// The release was refused (a field that does not parse, a contract that is not met). Nothing is
    /// wanted of it, and what runs is left alone.
    pub rejected: bool,
    pub services: BTreeMap<ServiceName, DesiredService>,
    /// By the name that the release gives.
    pub volumes: BTreeMap<String, DesiredVolume>,
    /// By the name that the release gives.
    pub networks: BTreeMap<String, DesiredNetwork>,
}

/// One service of the release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredService {
    pub key: ServiceKey,
    pub app_id: AppId,
    pub id: ServiceId,
    pub image_id: ImageId,
    pub release: ReleaseId,
    pub commit: Commit,
    /// `false` keeps a container that is stopped.
    pub running: bool,
    pub strategy: UpdateStrategy,
    pub handover_timeout: Duration,
    /// The container is started only after a reboot (`io.platform.update.requires-reboot`).
    pub requires_reboot: bool,
    /// Services of the same app that must have been started before this one is.
    pub depends_on: Vec<ServiceName>,
    pub config: ServiceConfig,
    /// SHA-256 of `config`'s canonical form, in hexadecimal; also `config.labels` holds it.
    pub digest: String,
    /// Variables given at creation that are no reason to make the container anew
    /// (`PLATFORM_DEVICE_NAME_AT_INIT`).
    pub init_environment: BTreeMap<String, String>,
}

impl DesiredService {
    /// The container's name, which carries what a rename can change (device behaviour 4.7).
    #[must_use]
    pub fn container_name(&self) -> String {
        format!(
            "{}_{}_{}_{}",
            self.key.service, self.image_id, self.release, self.commit
        )
    }
}

/// The order of an update, from the label `io.platform.update.strategy` (device behaviour 5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum UpdateStrategy {
    #[default]
    DownloadThenKill,
    KillThenDownload,
    DeleteThenDownload,
    HandOver,
}

/// A volume as an engine takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredVolume {
    /// `<appId>_<name>`.
    pub engine_name: String,
    pub config: VolumeConfig,
    /// SHA-256 of `config`'s canonical form, in hexadecimal; also `config.labels` holds it.
    pub digest: String,
}

/// What a volume is made from (device behaviour 4.4).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VolumeConfig {
    pub driver: String,
    pub driver_opts: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
}

/// A network as an engine takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredNetwork {
    /// `<appUuid>_<name>`.
    pub engine_name: String,
    pub config: NetworkConfig,
    /// SHA-256 of `config`'s canonical form, in hexadecimal; also `config.labels` holds it.
    pub digest: String,
}

/// What a network is made from (device behaviour 4.4).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NetworkConfig {
    pub driver: String,
    pub driver_opts: BTreeMap<String, String>,
    pub ipam_driver: String,
    pub ipam_options: BTreeMap<String, String>,
    pub ipam: Vec<IpamPool>,
    pub enable_ipv6: bool,
    pub internal: bool,
    pub config_only: bool,
    pub labels: BTreeMap<String, String>,
}
