//! The manifest: what a plugin is, answers, provides and needs, as TOML. A device reads it from a file that it does
//! not trust, so the size of the text and the number and length of everything in it are bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use semver::Version;
use serde::{Deserialize, Serialize};

use crate::glob;
use crate::limits::LimitError;
use crate::pattern::{Pattern, PatternError};
use crate::route::{Route, parse_method};
use crate::{Action, Capability, EventKind, PluginMetadata, Schedule, WrittenLimits};

/// The version of `platform:supervisor` in this release of the project.
pub const INTERFACE: Version = Version::new(1, 4, 0);

/// The largest manifest, and the largest description of routes, in bytes.
pub const SIZE: usize = 64 << 10;
/// The most routes, capabilities or boards of a plugin.
pub const COUNT: usize = 64;
/// The most schedules of a plugin.
pub const SCHEDULES: usize = 16;
/// The longest reason, version, board or text about the plugin, in bytes.
const TEXT: usize = 512;
/// The longest name, in bytes.
const NAME: usize = 63;

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
    #[error("its manifest asks for limits that no plugin gets: {0}")]
    Limit(#[from] LimitError),
    /// The file is not a component with one manifest, or something in the manifest is not valid; a sentence says
    /// what.
    #[error("{0}")]
    Invalid(String),
}

/// Creates the error for an invalid manifest.
pub(crate) fn invalid(what: impl fmt::Display) -> ManifestError {
    ManifestError::Invalid(format!("its manifest is invalid: {what}"))
}

/// The text of a manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestToml {
    name: String,
    version: Version,
    interface: Version,
    // Not flattened: serde then accepts unknown fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vendor: Option<String>,
    #[serde(default, alias = "license", skip_serializing_if = "Option::is_none")]
    licence: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    provides: Vec<Action>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    events: BTreeSet<EventKind>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    actions: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    boards: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    limits: WrittenLimits,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    schedules: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    capabilities: Vec<Need>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    routes: Vec<RouteToml>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteToml {
    method: String,
    path: String,
}

fn is_default(limits: &WrittenLimits) -> bool {
    *limits == WrittenLimits::default()
}

impl Manifest {
    /// Parses and checks the text of a manifest.
    ///
    /// # Errors
    /// If it contains something that is not allowed, or lacks something that is required.
    pub fn parse(text: &str) -> Result<Manifest, ManifestError> {
        let parse = |error| ManifestError::Parse(Box::new(error));
        // First only the version: a newer manifest may have other fields that are not known here.
        let table: toml::Table = toml::from_str(text).map_err(parse)?;
        if let Some(Ok(interface)) = table
            .get("interface")
            .and_then(toml::Value::as_str)
            .map(Version::parse)
        {
            check_interface(&interface)?;
        }
        let written: ManifestToml = toml::from_str(text).map_err(parse)?;
        let mut routes = Vec::new();
        for route in &written.routes {
            let pattern = Pattern::parse(&route.path)?;
            let method = parse_method(&route.method)
                .map_err(|error| invalid(format_args!("the route `{}`: {error}", route.path)))?;
            routes.push(Route { method, pattern });
        }
        let mut schedules = BTreeMap::new();
        for (name, schedule) in written.schedules {
            let schedule = schedule.parse().map_err(invalid)?;
            schedules.insert(name, schedule);
        }
        let manifest = Manifest {
            name: written.name,
            version: written.version,
            interface: written.interface,
            about: PluginMetadata {
                description: written.description,
                vendor: written.vendor,
                licence: written.licence,
                homepage: written.homepage,
            },
            routes,
            base_path: written
                .base_path
                .as_deref()
                .map(Pattern::parse)
                .transpose()?,
            provides: written.provides,
            events: written.events,
            schedules,
            actions: written.actions,
            capabilities: written.capabilities,
            boards: written.boards,
            limits: written.limits,
            openapi: None,
        };
        manifest.check()?;
        Ok(manifest)
    }

    /// Writes the text that [`Manifest::parse`] reads.
    ///
    /// # Errors
    /// If TOML cannot express it, which does not happen with parsed manifests.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let about = self.about.clone();
        let schedules = self.schedules.iter();
        let schedules = schedules.map(|(name, schedule)| (name.clone(), schedule.to_string()));
        let routes = self.routes.iter().map(|route| RouteToml {
            method: route.method.to_string(),
            path: route.pattern.to_string(),
        });
        toml::to_string(&ManifestToml {
            name: self.name.clone(),
            version: self.version.clone(),
            interface: self.interface.clone(),
            description: about.description,
            vendor: about.vendor,
            licence: about.licence,
            homepage: about.homepage,
            base_path: self.base_path.as_ref().map(Pattern::to_string),
            provides: self.provides.clone(),
            events: self.events.clone(),
            schedules: schedules.collect(),
            actions: self.actions.clone(),
            boards: self.boards.clone(),
            limits: self.limits.clone(),
            capabilities: self.capabilities.clone(),
            routes: routes.collect(),
        })
    }

    /// Checks what the types do not guarantee: lengths, numbers, and that there are no duplicates.
    ///
    /// # Errors
    /// The first thing that a device would refuse.
    pub fn check(&self) -> Result<(), ManifestError> {
        check_name(&self.name).map_err(invalid)?;
        self.check_counts()?;
        self.about.check().map_err(invalid)?;
        for (index, route) in self.routes.iter().enumerate() {
            let mut before = self.routes.iter().take(index);
            if let Some(other) = before.find(|other| other.is_the_same_as(route)) {
                return Err(invalid(format_args!(
                    "duplicate route `{route}`: it matches the same paths as `{other}`"
                )));
            }
        }
        self.check_base_path().map_err(invalid)?;
        if self.routes.is_empty() && self.provides.is_empty() {
            return Err(invalid("it has no routes and provides nothing"));
        }
        self.check_events().map_err(invalid)?;
        self.check_actions().map_err(invalid)?;
        for (index, need) in self.capabilities.iter().enumerate() {
            check_text(
                format_args!("the reason for the capability `{}`", need.name),
                &need.reason,
            )
            .map_err(invalid)?;
            let mut before = self.capabilities.iter().take(index);
            if before.any(|other| other.name == need.name) {
                return Err(invalid(format_args!(
                    "duplicate capability `{}`",
                    need.name
                )));
            }
        }
        for board in &self.boards {
            check_text("the name of a board", board).map_err(invalid)?;
        }
        if self.version.to_string().len() > TEXT {
            return Err(invalid(format_args!(
                "`version` has more than {TEXT} bytes"
            )));
        }
        Ok(self.limits.check()?)
    }

    fn check_base_path(&self) -> Result<(), String> {
        let Some(base) = &self.base_path else {
            return Ok(());
        };
        if base.names().next().is_some() {
            return Err(format!(
                "`base_path` is `{base}`, but must not contain a `:name`"
            ));
        }
        let mut routes = self.routes.iter();
        match routes.find(|route| !base.covers(&route.pattern, true)) {
            Some(route) => Err(format!(
                "the route `{route}` does not begin with `base_path`, which is `{base}`"
            )),
            None => Ok(()),
        }
    }

    fn check_events(&self) -> Result<(), String> {
        if self.events.contains(&EventKind::Schedule) {
            return Err("`events` contains `schedule`: name the times in `schedules`".to_owned());
        }
        if self.schedules.len() > SCHEDULES {
            let count = self.schedules.len();
            return Err(format!(
                "`schedules` has {count} entries, more than {SCHEDULES}"
            ));
        }
        for name in self.schedules.keys() {
            check_schedule_name(name)?;
        }
        let provides = self.provides.contains(&Action::Events);
        let asks = !self.event_kinds().is_empty();
        match (asks, provides) {
            (true, false) => {
                Err("it asks for events, but `provides` does not contain `events`".to_owned())
            }
            (false, true) => Err(
                "it provides `events`, but asks for none: name them in `events` or `schedules`"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    fn check_actions(&self) -> Result<(), String> {
        for name in &self.actions {
            check_action_name(name)?;
        }
        let provides = self.provides.contains(&Action::ActionProvider);
        if provides == self.actions.is_empty() {
            return Err(
                "it names `actions` of its own if and only if `provides` contains `action-provider`"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Returns all kinds of events that it asks for.
    #[must_use]
    pub fn event_kinds(&self) -> BTreeSet<EventKind> {
        let schedule = (!self.schedules.is_empty()).then_some(EventKind::Schedule);
        self.events.iter().copied().chain(schedule).collect()
    }

    fn check_counts(&self) -> Result<(), ManifestError> {
        for (what, count) in [
            ("routes", self.routes.len()),
            ("capabilities", self.capabilities.len()),
            ("boards", self.boards.len()),
            ("provides", self.provides.len()),
            ("actions", self.actions.len()),
        ] {
            if count > COUNT {
                return Err(invalid(format_args!(
                    "`{what}` has {count} entries, more than {COUNT}"
                )));
            }
        }
        Ok(())
    }

    /// Returns whether it is for devices of this type.
    #[must_use]
    pub fn is_for(&self, device_type: &str) -> bool {
        self.boards.is_empty() || self.boards.iter().any(|pattern| glob(pattern, device_type))
    }
}

/// Checks the name of a plugin.
///
/// # Errors
/// The rule for names.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME || name.starts_with('-') || !name.bytes().all(fits) {
        return Err(
            "`name` must be at most 63 lower-case letters, digits and `-`, and begin with a letter or digit",
        );
    }
    Ok(())
}

/// Checks the name of a schedule.
///
/// # Errors
/// The rule for names.
pub fn check_schedule_name(name: &str) -> Result<(), String> {
    check_name_of("schedule", name)
}

/// Checks the name of a plugin's own action.
///
/// # Errors
/// The rule for names.
pub fn check_action_name(name: &str) -> Result<(), String> {
    check_name_of("action", name)
}

fn check_name_of(what: &str, name: &str) -> Result<(), String> {
    check_name(name).map_err(|_| {
        let name: String = name.chars().take(100).collect();
        format!(
            "the {what} `{name}` must have a name of at most 63 lower-case letters, digits and `-`, that begins with a letter or digit"
        )
    })
}

/// Checks the length of a text, for example of a reason; `what` says which text it is.
///
/// # Errors
/// If it is empty or too long.
pub fn check_text(what: impl fmt::Display, text: &str) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > TEXT {
        let length = text.len();
        return Err(format!(
            "{what} must have 1 to {TEXT} bytes, and has {length}"
        ));
    }
    Ok(())
}

fn check_interface(interface: &Version) -> Result<(), ManifestError> {
    if interface.major != INTERFACE.major {
        return Err(ManifestError::Invalid(format!(
            "it was built for version {interface} of `platform:supervisor`, which this supervisor ({INTERFACE}) does not serve"
        )));
    }
    if interface.minor > INTERFACE.minor {
        return Err(ManifestError::Invalid(format!(
            "it needs version {interface} of `platform:supervisor`, and this supervisor has {INTERFACE}: update the supervisor"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
pub(crate) mod tests;
