//! The last lines of one plugin: the answer of `GET /v3/plugins/:name/log`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Moment;

/// The last lines that a plugin has written, and what the supervisor says of calls that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PluginLog {
    /// The number of the newest line, in the answer or not; 0 if there is none. Numbers begin anew with the supervisor,
    /// and with a plugin that was removed.
    pub newest: u64,
    /// The lines, the oldest first.
    pub lines: Vec<PluginLogLine>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PluginLogLine {
    /// One more than the line before had. Numbers that are missing are of lines that were dropped for newer ones.
    pub number: u64,
    /// When it was written.
    pub time: Moment,
    /// How important the plugin says it is.
    pub level: PluginLogLevel,
    /// The text, without line breaks.
    pub message: String,
}

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PluginLogLevel {
    /// Of interest to the author.
    Debug,
    /// What the plugin does.
    Info,
    /// Something that somebody should look at.
    Warn,
    /// Something that failed.
    Error,
}
