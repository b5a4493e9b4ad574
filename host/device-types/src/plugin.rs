//! Plugins and the restrictions on foreign code: the answer of `GET /v3/plugins`.

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A plugin, or a file that should be one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginReport {
    /// The plugin's name; if its manifest cannot be read, the file's name.
    pub name: String,
    /// The file.
    pub file: String,
    /// The version that is in use or was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The plugin's description of itself.
    #[serde(flatten)]
    pub about: PluginAbout,
    /// The version of `platform:supervisor` that it was built for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// SHA-256 of the file that is in use or was refused.
    pub digest: String,
    /// Whether it is in use.
    pub state: PluginState,
    /// Whether the file in use is not pinned to its name, which developer mode permits; left out if it is pinned.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub unpinned: bool,
    /// The name, in the policy, of the key that pins the file in use to its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Why the present file was refused. If the state is `running` nevertheless, the previous version stays in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// SHA-256 of the refused file, if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_digest: Option<String>,
    /// The routes that it answers.
    pub routes: Vec<RouteReport>,
    /// The actions that it provides.
    pub provides: Vec<&'static str>,
    /// The events for which it is called.
    pub events: Vec<&'static str>,
    /// Its own actions, which other plugins can call.
    pub actions: Vec<String>,
    /// The capabilities that the policy grants it.
    pub grants: Vec<&'static str>,
    /// The limits in force; absent if it is not in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<PluginLimits>,
    /// The fields that it adds to the device's report to its cloud, sorted by name.
    pub fields: Vec<PluginField>,
    /// The number of calls since the supervisor started.
    pub calls: u64,
    /// The number of these calls that failed because of the plugin: traps, time-outs, limits, bad answers.
    pub failures: u64,
    /// The last such failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// The limits of a plugin, with the names that they have in manifests and policies: the unit is part of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PluginLimits {
    /// The memory of a call, in MiB.
    pub memory_mib: u32,
    /// The CPU time of a call, in milliseconds; time spent waiting does not count.
    pub cpu_ms: u32,
    /// The wall time until the answer begins, in milliseconds.
    pub wall_ms: u32,
    /// A request's body, and an answer's unless it is a stream, in KiB.
    pub body_kib: u32,
    /// The number of simultaneous calls.
    pub concurrency: u32,
}

/// A field that a plugin adds to the device's report to its cloud (`wit/report.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PluginField {
    /// The field's name.
    pub name: String,
    /// The field's value.
    pub value: PluginFieldValue,
    /// The unit of the value, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// The value of a plugin's field.
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

/// A plugin's description of itself, for people. The device does not check it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginAbout {
    /// What the plugin is for, in its maker's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its maker, according to the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The licence of its code, according to the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// A web page about it, according to the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
}

/// The state of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PluginState {
    /// It is loaded and answers.
    Running,
    /// It is being read or compiled, or waits for a plugin with the same routes or actions that is.
    Loading,
    /// It is for other boards.
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
    /// Methods and patterns; `:name` matches any segment.
    pub routes: Vec<(Method, String)>,
    /// The plugin's description of its routes: a part of an OpenAPI document with `paths` and `components`, unchanged.
    pub description: Option<Value>,
}

/// The restrictions on processes that run foreign code, in addition to the sandbox of WebAssembly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Confinement {
    /// Whether the policy refuses to start such a process if a restriction is missing.
    pub required: bool,
    /// The last run of the compiler, the processes of plugins, and each running service of the wasm engine.
    pub processes: Vec<ConfinedProcess>,
}

/// One such process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfinedProcess {
    /// `compiler`, `plugins`, `plugins with` and their folders, or `service` with the name of its container.
    pub process: String,
    /// The restrictions in force.
    pub in_force: Vec<String>,
    /// The missing restrictions.
    pub missing: Vec<MissingWall>,
    /// Those restrictions in force of which this system has only a weaker form.
    pub lower: Vec<MissingWall>,
}

/// A restriction that is missing or weaker than it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingWall {
    /// The restriction's name.
    pub wall: String,
    /// What the system lacks, or its error.
    pub reason: String,
}
