//! Plugins and the walls around foreign code: the answer of `GET /v3/plugins`.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// One plugin, or one file that should be one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginReport {
    /// The plugin's name; the file's, where it has no manifest that can be read.
    pub name: String,
    /// The file.
    pub file: String,
    /// The version that serves, or that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it says about itself.
    #[serde(flatten)]
    pub about: PluginAbout,
    /// The version of `platform:supervisor` that it was built for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// SHA-256 of the file that serves, or was refused.
    pub digest: String,
    /// Whether it serves.
    pub state: PluginState,
    /// Whether the file that serves is pinned to its name by nobody, which developer mode lets pass; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
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
    /// The events that it is called for.
    pub events: Vec<&'static str>,
    /// The actions of its own that it does for other plugins.
    pub actions: Vec<String>,
    /// The capabilities that the policy grants it.
    pub grants: Vec<&'static str>,
    /// What it adds to what the device tells its cloud, sorted by name.
    pub fields: Vec<PluginField>,
    /// How often it was called since the supervisor started.
    pub calls: u64,
    /// How many of these calls failed through its fault: traps, time-outs, limits, bad answers.
    pub failures: u64,
    /// What the last such failure was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A field that a plugin adds to what the device tells its cloud (`wit/report.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PluginField {
    /// The field's name.
    pub name: String,
    /// What it says.
    pub value: PluginFieldValue,
    /// The unit of the value, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// What a field of a plugin says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PluginFieldValue {
    /// One line.
    Text(String),
    /// A finite number.
    Number(serde_json::Number),
    /// True or false.
    Boolean(bool),
}

/// What a plugin says about itself to people. The device does not check it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginAbout {
    /// What the plugin is for, in its maker's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who makes it, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The licence of its code, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// A web page about it, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
}

/// Whether a plugin serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RouteReport {
    /// The method.
    pub method: String,
    /// The pattern.
    pub path: String,
}

/// The routes of one plugin.
#[derive(Debug, Clone, Hash)]
pub struct PluginRoutes {
    /// Its name.
    pub plugin: String,
    /// Methods and patterns, `:name` for a segment of any text.
    pub routes: Vec<(Method, String)>,
    /// The plugin's description of its routes: a part of an OpenAPI document with `paths` and `components`, unchanged.
    pub description: Option<Value>,
}

/// The walls around processes that run foreign code, beside the sandbox of WebAssembly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Confinement {
    /// Whether the policy refuses to start such a process where a wall is missing.
    pub required: bool,
    /// The compiler as it last ran, the processes of plugins, and each service on the wasm engine that runs.
    pub processes: Vec<ConfinedProcess>,
}

/// One such process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfinedProcess {
    /// `compiler`, `plugins`, `plugins with` and their folders, or `service` with the name of its container.
    pub process: String,
    /// The walls that stand.
    pub in_force: Vec<String>,
    /// The walls that do not.
    pub missing: Vec<MissingWall>,
    /// Of the walls that stand, those that this system has a lower form of.
    pub lower: Vec<MissingWall>,
}

/// A wall that does not stand as it should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingWall {
    /// Which.
    pub wall: String,
    /// What the system lacks, or said.
    pub reason: String,
}
