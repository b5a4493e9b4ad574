//! The whole of a target state, app by app.

use std::collections::BTreeMap;

use crate::{
    ApiKey, AppId, AppUuid, Branding, DesiredState, DeviceUuid, ServiceName, TargetErrors,
    TargetState,
};

/// What services are told of the device, and where the device keeps what it shares with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    pub uuid: DeviceUuid,
    /// The device's name now.
    pub name: String,
    /// The host's name; services on the host's network have it.
    pub hostname: String,
    pub device_type: String,
    pub arch: String,
    /// The host OS as people call it, for example `Debian GNU/Linux 12`.
    pub os_version: String,
    /// The host's root folder as engines see it: `/` but in tests and in `cargo xtask run`.
    pub host_root: String,
    /// The port that the device's API listens on.
    pub api_port: u16,
    pub branding: Branding,
}

impl DeviceFacts {
    /// The folder of one service's locks and hand-over files, as engines see it:
    /// `<host_root>/tmp/platform-supervisor/services/<appId>/<serviceName>` (device behaviour 3.1).
    #[must_use]
    pub fn lock_folder(&self, app: AppId, service: &ServiceName) -> String {
        format!(
            "{}/{}/services/{app}/{service}",
            self.host_root.trim_end_matches('/'),
            self.branding.host_folder(),
        )
    }
}

/// Where services' keys to the device's API come from. The store implements it.
pub trait ApiKeys {
    /// The key of one service; made at the first call, the same from then on.
    ///
    /// # Errors
    /// [`KeyError`] where it can be neither read nor kept.
    fn service_key(&self, app: AppId, service: &ServiceName) -> Result<ApiKey, KeyError>;
}

/// A service's key could not be had.
#[derive(Debug, thiserror::Error)]
#[error("failed to get the API key of service `{service}` of app {app}")]
pub struct KeyError {
    pub app: AppId,
    pub service: ServiceName,
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A target state, resolved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolved {
    /// All apps. One that was refused has [`crate::DesiredApp::rejected`] set and holds nothing: what
    /// runs of it is left alone.
    pub desired: DesiredState,
    /// What was ignored, one sentence each, in the order of apps and services.
    pub warnings: Vec<String>,
    /// Why apps were refused.
    pub rejected: BTreeMap<AppUuid, TargetErrors>,
}

impl Resolved {
    /// All problems of all apps, for an answer that takes a target whole or not at all.
    #[must_use]
    pub fn problems(&self) -> Option<TargetErrors> {
        TargetErrors::joined(self.rejected.values().cloned())
    }
}

/// Resolves `target` for this device.
///
/// # Errors
/// [`KeyError`] where a service's API key could not be had.
pub fn resolve(
    target: &TargetState,
    facts: &DeviceFacts,
    keys: &dyn ApiKeys,
) -> Result<Resolved, KeyError> {
    let _ = (target, facts, keys);
    Ok(Resolved::default())
}
