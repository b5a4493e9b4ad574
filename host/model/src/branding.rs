//! The names that a vendor may change without a patch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::DeviceUuid;

/// Names of variables, labels and folders, and the reported API level: one value, set once in
/// configuration. Every name that contains the product's name is derived from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Branding {
    /// Prefix of environment variables, with its underscore: `PLATFORM_`.
    pub env_prefix: String,
    /// Namespace of labels, without a dot at the end: `io.platform`.
    pub label_namespace: String,
    /// Word in folder names: `platform` results in `/tmp/platform` in services and
    /// `/tmp/platform-supervisor` on the host.
    pub folder: String,
    /// The bridge network that services use to reach the API.
    pub network: String,
    /// The version that `/v2/version`, `supervisor_version` and the User-Agent report: clients gate
    /// features on it (docs/spec/device.md#api-level). Never below 16.6.0.
    pub api_level: String,
    /// Older environment prefixes that are read in addition to `env_prefix`, and written only if
    /// listed.
    pub aliases: Vec<String>,
}

impl Default for Branding {
    fn default() -> Self {
        Branding {
            env_prefix: "PLATFORM_".into(),
            label_namespace: "io.platform".into(),
            folder: "platform".into(),
            network: "supervisor0".into(),
            api_level: "19.0.0".into(),
            aliases: Vec::new(),
        }
    }
}

impl Branding {
    /// Returns the variable `PLATFORM_<name>`.
    #[must_use]
    pub fn env(&self, name: &str) -> String {
        format!("{}{name}", self.env_prefix)
    }

    /// Returns the variables of a service that contain keys: never shown
    /// (docs/spec/device.md#v1-app).
    #[must_use]
    pub fn secret_variables(&self) -> Vec<String> {
        let prefixes = std::iter::once(&self.env_prefix).chain(&self.aliases);
        let names = ["SUPERVISOR_API_KEY", "API_KEY"];
        prefixes
            .flat_map(|prefix| names.map(|name| format!("{prefix}{name}")))
            .collect()
    }

    /// Returns the label `io.platform.<name>`.
    #[must_use]
    pub fn label(&self, name: &str) -> String {
        format!("{}.{name}", self.label_namespace)
    }

    /// Returns the labels that mark an object as belonging to a device.
    #[must_use]
    pub fn device_labels(&self, device: &DeviceUuid) -> BTreeMap<String, String> {
        BTreeMap::from([
            (self.label("supervised"), "true".to_owned()),
            (self.label("device-uuid"), device.to_string()),
        ])
    }

    /// Returns the WebSocket subprotocol of the tunnel between device and cloud: `h2.platform`.
    #[must_use]
    pub fn tunnel_protocol(&self) -> String {
        format!("h2.{}", self.folder)
    }

    /// Returns the folder of locks and hand-over files inside a service: `/tmp/platform`.
    #[must_use]
    pub fn service_folder(&self) -> String {
        format!("/tmp/{}", self.folder)
    }

    /// Returns the volatile folder of the supervisor on the host, below the host root:
    /// `tmp/platform-supervisor`.
    #[must_use]
    pub fn host_folder(&self) -> String {
        format!("tmp/{}-supervisor", self.folder)
    }
}
