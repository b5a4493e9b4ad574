//! What the device should run, resolved: names are the engine's, variables and labels are included, and nothing is left
//! to look up. The planner compares this with the objects of the engines.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::{
    AppId, AppUuid, Commit, DesiredOs, ImageId, IpamPool, ReleaseId, ServiceConfig, ServiceId,
    ServiceKey, ServiceName, config_variables,
};

/// What all apps of the device should run, and how its host should be configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DesiredState {
    /// All apps that the device should have; any other is removed, with everything that belongs to it.
    pub apps: BTreeMap<AppUuid, DesiredApp>,
    /// The host's configuration; `None` if there has never been a target: then the host is left unchanged.
    pub host: Option<DesiredHost>,
}

/// The host's configuration according to the target's variables (docs/spec/device.md#config-variables).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DesiredHost {
    /// The board's boot configuration, by variable: `HOST_CONFIG_gpu_mem`.
    pub boot_config: BTreeMap<String, String>,
    /// Whether the host keeps its journal across reboots (`SUPERVISOR_PERSISTENT_LOGGING`).
    pub persistent_logging: bool,
    /// The version of the operating system; `None` if the target names none.
    pub os: Option<DesiredOs>,
}

/// A part of the host that a target configures.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display, VariantArray,
)]
pub enum HostPart {
    /// The boot configuration: variables `HOST_CONFIG_*` and the like (docs/spec/device.md#boot-config).
    #[strum(serialize = "boot configuration")]
    BootConfig,
    /// Whether the journal survives a reboot (`SUPERVISOR_PERSISTENT_LOGGING`).
    #[strum(serialize = "journal's storage")]
    PersistentLogging,
}

impl DesiredHost {
    /// Reads the host's configuration from these variables.
    #[must_use]
    pub fn from_variables(variables: &BTreeMap<String, String>) -> Self {
        let boot = variables
            .iter()
            .filter(|(key, _)| config_variables::is_boot_config(key));
        DesiredHost {
            boot_config: boot
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            persistent_logging: config_variables::flag(variables, "SUPERVISOR_PERSISTENT_LOGGING"),
            os: DesiredOs::from_variables(variables),
        }
    }
}

/// One app. An app without a release has no services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredApp {
    /// The app's number, by which lock folders and volumes are named.
    pub id: AppId,
    /// The app's uuid, by which networks are named.
    pub uuid: AppUuid,
    /// The app's name in the target, for people and for the environment of services.
    pub name: String,
    /// The commit of the wanted release; `None` for an app without one.
    pub commit: Option<Commit>,
    /// The number of the wanted release; `None` for an app without one.
    pub release: Option<ReleaseId>,
    /// Whether it is a host app or the supervisor's own: shown, never run or removed.
    pub not_ours: bool,
    /// The release was refused (a field that does not parse, a contract that is not met). None of it must run, and
    /// what runs is left unchanged.
    pub rejected: bool,
    /// The services of the release, except optional ones whose contract the device does not meet.
    pub services: BTreeMap<ServiceName, DesiredService>,
    /// Keys are the names in the release.
    pub volumes: BTreeMap<String, DesiredVolume>,
    /// Keys are the names in the release.
    pub networks: BTreeMap<String, DesiredNetwork>,
}

/// One service of the release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredService {
    /// The app and the service, the same in all releases.
    pub key: ServiceKey,
    /// The number of its app.
    pub app_id: AppId,
    /// The service's number, in the labels of its container.
    pub id: ServiceId,
    /// The image's number, in the container's name.
    pub image_id: ImageId,
    /// The release's number, in the container's name.
    pub release: ReleaseId,
    /// The release's commit, in the container's name.
    pub commit: Commit,
    /// Whether the service should run; `false` keeps a stopped container.
    pub running: bool,
    /// The order in which an update replaces its container.
    pub strategy: UpdateStrategy,
    /// How long a new container may take to report that it has taken over (docs/spec/device.md#hand-over).
    pub handover_timeout: Duration,
    /// Whether the container is started only after a reboot (`io.platform.update.requires-reboot`).
    pub requires_reboot: bool,
    /// Services of the same app that must have been started before this one.
    pub depends_on: Vec<ServiceName>,
    /// The configuration from which its container is created, and with which it is compared.
    #[serde(with = "complete_config")]
    pub config: ServiceConfig,
    /// SHA-256 of `config`'s canonical form, in hexadecimal; `config.labels` contains it as well.
    pub digest: String,
    /// Variables that are set at creation and do not cause the container to be recreated
    /// (`PLATFORM_DEVICE_NAME_AT_INIT`).
    pub init_environment: BTreeMap<String, String>,
}

impl DesiredService {
    /// Returns the container's name, which contains the properties that a rename can change
    /// (docs/spec/device.md#container-identity).
    #[must_use]
    pub fn container_name(&self) -> String {
        format!(
            "{}_{}_{}_{}",
            self.key.service, self.image_id, self.release, self.commit
        )
    }
}

/// The order of an update, from the label `io.platform.update.strategy` (docs/spec/device.md#update-strategies).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateStrategy {
    /// Download all images of the app, then stop the old container and start the new one.
    #[default]
    DownloadThenKill,
    /// Stop the old container before the download, then start the new one.
    KillThenDownload,
    /// As [`Self::KillThenDownload`], and the old image is removed before the download.
    DeleteThenDownload,
    /// Start the new container next to the old one, which is removed when the new one has taken over.
    HandOver,
}

/// A volume or network in the engine's terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredObject<C> {
    /// The engine's name for it: `<appId>_<name>` for a volume, `<appUuid>_<name>` for a network.
    pub engine_name: String,
    /// The configuration from which the engine creates it, and with which it is compared.
    pub config: C,
    /// SHA-256 of `config`'s canonical form, in hexadecimal; `config.labels` contains it as well.
    pub digest: String,
}

/// A volume in the engine's terms.
pub type DesiredVolume = DesiredObject<VolumeConfig>;

/// A network in the engine's terms.
pub type DesiredNetwork = DesiredObject<NetworkConfig>;

/// The configuration of a volume (docs/spec/device.md#compose-volumes).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VolumeConfig {
    /// The driver that provides it; `local` if the release names none.
    pub driver: String,
    /// Options for the driver; only the driver knows their meaning.
    pub driver_opts: BTreeMap<String, String>,
    /// The release's labels and the supervisor's own.
    pub labels: BTreeMap<String, String>,
}

/// The configuration of a network (docs/spec/device.md#compose-networks).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NetworkConfig {
    /// The driver that creates it; `bridge` if the release names none.
    pub driver: String,
    /// Options for the driver; only the driver knows their meaning.
    pub driver_opts: BTreeMap<String, String>,
    /// The driver that assigns addresses; `default` if the release names none.
    pub ipam_driver: String,
    /// Options for that address driver.
    pub ipam_options: BTreeMap<String, String>,
    /// The address pools; empty lets the engine choose.
    pub ipam: Vec<IpamPool>,
    /// Whether containers get IPv6 addresses too.
    pub enable_ipv6: bool,
    /// Whether the network has no route out of the host.
    pub internal: bool,
    /// Whether it is only a configuration from which other networks are created: no container joins it.
    pub config_only: bool,
    /// The release's labels and the supervisor's own.
    pub labels: BTreeMap<String, String>,
}

/// A service's configuration including the parts that its digest leaves out.
mod complete_config {
    use std::borrow::Cow;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::ServiceConfig;

    #[derive(Serialize, Deserialize)]
    struct CompleteServiceConfig<'a> {
        fields: Cow<'a, ServiceConfig>,
        nano_cpus: i64,
    }

    pub(super) fn serialize<S: Serializer>(
        config: &ServiceConfig,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let complete = CompleteServiceConfig {
            fields: Cow::Borrowed(config),
            nano_cpus: config.nano_cpus,
        };
        complete.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ServiceConfig, D::Error> {
        let complete = CompleteServiceConfig::deserialize(deserializer)?;
        Ok(ServiceConfig {
            nano_cpus: complete.nano_cpus,
            ..complete.fields.into_owned()
        })
    }
}
