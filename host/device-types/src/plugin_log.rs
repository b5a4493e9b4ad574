//! The last lines of one plugin: the answer of `GET /v3/plugins/:name/log`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Moment;

/// The last lines that a plugin has written, and the supervisor's reports of failed calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PluginLog {
    /// The number of the newest line, in the answer or not; 0 if there is none. Numbering restarts with the supervisor
    /// and after a plugin was removed.
    pub newest: u64,
    /// The lines, the oldest first.
    pub lines: Vec<PluginLogLine>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PluginLogLine {
    /// One more than that of the previous line. Missing numbers belong to lines that were dropped for newer ones.
    pub number: u64,
    /// The time of the line.
    pub time: Moment,
    /// The level that the plugin gave it.
    pub level: PluginLogLevel,
    /// The text, without line breaks.
    pub message: String,
}

/// The level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PluginLogLevel {
    /// Of interest to the author.
    Debug,
    /// An activity of the plugin.
    Info,
    /// Something that somebody should check.
    Warn,
    /// Something that failed.
    Error,
}
