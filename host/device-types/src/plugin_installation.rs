//! Plugins that a developer installs through the API: the answer of `PUT /v3/plugins/:name`, and the reasons for a
//! refusal.

use schemars::JsonSchema;
use serde::Serialize;

use crate::PluginState;

/// The result of installing a plugin's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInstallation {
    /// The version of the file.
    pub version: String,
    /// SHA-256 of the file.
    pub digest: String,
    /// The previous version; left out if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// The state of the plugin. It is `running` together with `refused` if the previous version stays in use.
    pub state: PluginState,
    /// Why the file is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// If the file is refused, what it asks for, and the lines of the policy that grant it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_lines: Option<String>,
}

/// Why a plugin was not installed or removed; the device is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallRefusal {
    /// The file or the name is invalid.
    Invalid(String),
    /// Something on the device prevents it.
    Conflict(String),
    /// There is no such plugin.
    Unknown,
    /// It failed, and may succeed later.
    Failed(String),
}
