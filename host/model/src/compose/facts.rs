//! Facts about the device that are visible to its services.

use crate::{ApiKey, AppId, AppUuid, Branding, DeviceUuid, ServiceName};

/// The facts about the device that services receive, and the places that it shares with them.
#[derive(Debug, Clone)]
pub struct DeviceFacts {
    /// The device's uuid, in the environment of services and in the labels of all created objects.
    pub uuid: DeviceUuid,
    /// The device's name now.
    pub name: String,
    /// The host's name; services on the host's network have the same one.
    pub hostname: String,
    /// The slug of the board, for example `raspberrypi4-64`.
    pub device_type: String,
    /// The processor's architecture as the device type's description names it, for example `amd64`.
    pub arch: String,
    /// The host OS as people call it, for example `Debian GNU/Linux 12`.
    pub os_version: String,
    /// The host's root folder as engines see it: `/` except in tests and in `cargo xtask run`.
    pub host_root: String,
    /// The port that the device's API listens on.
    pub api_port: u16,
    /// Prefixes of variables and labels, and the names of folders and of the API's network.
    pub branding: Branding,
    /// The parts of the host and of the cloud to which feature labels can give access.
    pub host: HostFacts,
}

/// The parts of the host and of the cloud to which feature labels can give access (docs/spec/device.md#feature-labels).
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    /// Whether `/lib/modules` exists.
    pub has_kernel_modules: bool,
    /// Whether `/lib/firmware` exists.
    pub has_firmware: bool,
    /// The container engine's socket as engines see it; `None` if there is none, or it is reached
    /// over the network.
    pub engine_socket: Option<String>,
    /// The revision of the board, if the host reports it.
    pub board_revision: Option<String>,
    /// The build of the host OS, if it is reported.
    pub os_build: Option<String>,
    /// `None` on a device without a cloud.
    pub cloud: Option<CloudAccess>,
    /// The app of which this supervisor itself is a release, if configuration names it.
    pub own_app: Option<AppUuid>,
}

/// How services talk to the cloud as the device.
#[derive(Debug, Clone)]
pub struct CloudAccess {
    /// The cloud's `apiEndpoint`, without a slash at its end.
    pub url: String,
    /// The device's own key at the cloud.
    pub key: ApiKey,
}

impl DeviceFacts {
    /// Returns the folder of one service's locks and hand-over files, as engines see it:
    /// `<host_root>/tmp/platform-supervisor/services/<appId>/<serviceName>` (docs/spec/device.md#locks-paths).
    #[must_use]
    pub fn lock_folder(&self, app: AppId, service: &ServiceName) -> String {
        format!(
            "{}/{}/services/{app}/{service}",
            self.host_root.trim_end_matches('/'),
            self.branding.host_folder(),
        )
    }
}
