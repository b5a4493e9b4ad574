//! What `GET /v3/plugins` says of each plugin.

use serde::Serialize;

/// One plugin, or one file that should be one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginReport {
    /// The plugin's name; the file's, where it has no manifest that can be read.
    pub name: String,
    /// The file.
    pub file: String,
    /// The version that serves, or that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version of `platform:supervisor` that it was built for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// SHA-256 of the file that serves, or was refused.
    pub digest: String,
    /// Whether it serves.
    pub state: PluginState,
    /// Whether the file that serves is pinned to its name by nobody, which developer mode lets pass.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unpinned: bool,
    /// The name in the policy of the key that pins the file that serves to its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Why the file as it is now was refused. With the state `running`, an older version serves on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The routes that it answers.
    pub routes: Vec<RouteReport>,
    /// The actions that it provides.
    pub provides: Vec<&'static str>,
    /// The capabilities that the policy grants it.
    pub grants: Vec<&'static str>,
    /// How often it was called since the supervisor started.
    pub calls: u64,
    /// How many of these calls failed through its fault: traps, time-outs, limits, bad answers.
    pub failures: u64,
    /// What the last such failure was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// How a plugin has fared since the supervisor started, over all its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginTally {
    /// The plugin's name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// How many of these calls failed through its fault.
    pub failures: u64,
    /// What all calls took, until their answer was there.
    pub time: std::time::Duration,
}

/// Whether a plugin serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginState {
    /// It is loaded and answers.
    Running,
    /// It is read or compiled, or waits for one that wants the same and is.
    Loading,
    /// It is for other boards than this.
    OtherBoard,
    /// It was refused; `refused` says why.
    Refused,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteReport {
    /// The method.
    pub method: String,
    /// The pattern.
    pub path: String,
}

/// What a plugin that serves answers.
#[derive(Debug, Clone)]
pub struct DescribedRoutes {
    /// Its name.
    pub plugin: String,
    /// Methods and patterns.
    pub routes: Vec<(http::Method, String)>,
    /// What the plugin says of them, as it says it: meant to be a part of an OpenAPI document, and not
    /// checked to be one.
    pub description: Option<serde_json::Value>,
}
