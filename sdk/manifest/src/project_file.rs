//! The raw content of `plugin.toml`: each value with its place in the file, so that errors can name the place.

use std::collections::BTreeMap;

use semver::Version;
use serde::Deserialize;
use toml::Spanned;

use crate::form_error::FormError;
use crate::{Action, EventKind, Language, NeededCapability};

/// The values of a `plugin.toml`; only their form has been checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct ProjectFile {
    /// The plugin's name.
    pub name: Spanned<String>,
    /// The plugin's own version.
    pub version: Spanned<Version>,
    /// The version of `platform:supervisor`, if it differs from that of this release.
    pub interface: Option<Spanned<Version>>,
    /// What the plugin is for.
    pub description: Option<Spanned<String>>,
    /// The plugin's maker.
    pub vendor: Option<Spanned<String>>,
    /// The licence of its code.
    #[serde(alias = "license")]
    pub licence: Option<Spanned<String>>,
    /// A web page about it.
    pub homepage: Option<Spanned<String>>,
    /// The file next to `plugin.toml` that describes the routes.
    pub openapi: Option<Spanned<String>>,
    /// The common beginning of all routes; a component of another toolchain does not see it in a path.
    pub base_path: Option<Spanned<String>>,
    /// Patterns of device types.
    #[serde(default)]
    pub boards: Vec<Spanned<String>>,
    /// The events that it asks for.
    #[serde(default)]
    pub events: Vec<Spanned<EventKind>>,
    /// How it is built.
    #[serde(default)]
    pub build: WrittenBuild,
    /// The capabilities that it needs, each with the reason.
    #[serde(default)]
    pub capabilities: BTreeMap<Spanned<NeededCapability>, Spanned<String>>,
    /// Method and path, each with its handler.
    #[serde(default)]
    pub routes: BTreeMap<Spanned<String>, Spanned<String>>,
    /// The actions, each with its provider.
    #[serde(default)]
    pub provides: BTreeMap<Spanned<Action>, Spanned<String>>,
    /// The schedules on which it is called, by name.
    #[serde(default)]
    pub schedules: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Its own actions, each with the function that performs it.
    #[serde(default)]
    pub actions: BTreeMap<Spanned<String>, Spanned<String>>,
    /// The limits, each with its value.
    #[serde(default)]
    pub limits: BTreeMap<Spanned<String>, Spanned<u32>>,
}

/// The table `build` of a `plugin.toml`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct WrittenBuild {
    /// The language of the sources.
    pub language: Option<Spanned<Language>>,
    /// The main source file; for a component, the component.
    pub source: Option<String>,
    /// The shell command that builds a component.
    pub command: Option<Spanned<String>>,
}

impl ProjectFile {
    /// Parses the text of a `plugin.toml`.
    ///
    /// # Errors
    /// If it is not TOML, or a value has another type.
    pub fn parse(text: &str) -> Result<ProjectFile, FormError> {
        toml::from_str(text).map_err(|error| FormError::new(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_knows_its_place() {
        let text = "name = 'a'\nversion = '1.0.0'\n[capabilities]\nhost-name = 'x'\n[limits]\ncpu_ms = 5\n";
        let file = ProjectFile::parse(text).unwrap();
        let (capability, reason) = file.capabilities.first_key_value().unwrap();
        assert_eq!(&text[capability.span()], "host-name");
        assert_eq!(&text[reason.span()], "'x'");
        let (key, value) = file.limits.first_key_value().unwrap();
        assert_eq!((&text[key.span()], &text[value.span()]), ("cpu_ms", "5"));
    }
}
