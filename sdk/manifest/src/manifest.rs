//! The manifest: what a plugin is, answers, provides and needs, as TOML. A device reads it from a file that it does
//! not trust, so the size of the text and the number and length of everything in it are bounded.

mod rules;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use semver::Version;
use serde::{Deserialize, Serialize};

use crate::glob;
use crate::limits::LimitError;
use crate::pattern::{Pattern, PatternError};
use crate::route::Route;
use crate::{Action, Capability, EventKind, PluginMetadata, Schedule, WrittenLimits};

/// The version of `platform:supervisor` in this release of the project.
pub const INTERFACE: Version = Version::new(1, 4, 0);

/// The largest manifest, and the largest description of routes, in bytes.
pub const SIZE: usize = 64 << 10;
/// The most routes, capabilities or boards of a plugin.
pub const COUNT: usize = 64;
/// The most schedules of a plugin.
pub const SCHEDULES: usize = 16;

/// A checked manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Invariant: letters in lower case, digits and `-`, beginning with a letter or digit, at most 63.
    pub name: String,
    /// The plugin's own version.
    pub version: Version,
    /// The version of `platform:supervisor` that it was built for.
    pub interface: Version,
    /// Its description of itself, for people.
    pub about: PluginMetadata,
    /// The routes that it answers.
    pub routes: Vec<Route>,
    /// The common beginning of all routes; a component that answers as `wasi:http` does not see it in a request's
    /// path.
    pub base_path: Option<Pattern>,
    /// The typed actions that it provides.
    pub provides: Vec<Action>,
    /// The events that it asks for, without [`EventKind::Schedule`].
    pub events: BTreeSet<EventKind>,
    /// The schedules on which it is called, by name.
    pub schedules: BTreeMap<String, Schedule>,
    /// The names of its own actions.
    pub actions: BTreeSet<String>,
    /// The capabilities that it needs, with reasons for people.
    pub capabilities: Vec<Need>,
    /// Patterns of device types that it is for, with `*` for any text; if empty, it is for all.
    pub boards: Vec<String>,
    /// The limits that it asks for.
    pub limits: WrittenLimits,
    /// Its description of its routes, from a separate section: a JSON object, which is parsed only when needed.
    pub openapi: Option<Box<str>>,
}

/// A capability that a plugin needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// The capability.
    pub name: Capability,
    /// The purpose, in words for the person who grants it.
    pub reason: String,
}

/// The reason why a file has no usable manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not valid TOML, or not of the expected form.
    #[error("its manifest is invalid")]
    Parse(#[source] Box<toml::de::Error>),
    /// The path of a route is not valid.
    #[error(transparent)]
    Route(#[from] PatternError),
    /// A limit is outside its range.
    #[error("its manifest asks for limits that no plugin gets")]
    Limit(#[from] LimitError),
    /// The file is not a component with one manifest, or something in the manifest is not valid; a sentence says
    /// what.
    #[error("{0}")]
    Invalid(String),
}

/// Creates the error for an invalid manifest.
fn invalid(what: impl fmt::Display) -> ManifestError {
    ManifestError::Invalid(format!("its manifest is invalid: {what}"))
}

impl Manifest {
    /// Returns all kinds of events that it asks for.
    #[must_use]
    pub fn event_kinds(&self) -> BTreeSet<EventKind> {
        let schedule = (!self.schedules.is_empty()).then_some(EventKind::Schedule);
        self.events.iter().copied().chain(schedule).collect()
    }

    /// Returns whether it asks for a capability.
    #[must_use]
    pub fn asks_for(&self, capability: Capability) -> bool {
        self.capabilities.iter().any(|need| need.name == capability)
    }

    /// Returns whether it is for devices of this type.
    #[must_use]
    pub fn is_for(&self, device_type: &str) -> bool {
        self.boards.is_empty() || self.boards.iter().any(|pattern| glob(pattern, device_type))
    }
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
pub(crate) mod tests;
