//! Plugins that a developer installs through the API: the answer of `PUT /v3/plugins/:name`, and the reasons for a
//! refusal.

use schemars::JsonSchema;
use serde::Serialize;

use crate::PluginState;

/// What has become of a plugin's file that was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInstallation {
    /// The version of the file.
    pub version: String,
    /// SHA-256 of the file.
    pub digest: String,
    /// The version that was there before; left out if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// Whether the plugin serves. It is `running` with `refused` if the version before serves on.
    pub state: PluginState,
    /// Why the file is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// If it is refused, what it asks for, and the lines of the policy that give it.
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
    /// It failed for now.
    Failed(String),
}
