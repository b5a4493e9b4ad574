//! The raw content of `plugin.toml`: each value with its place in the file, so that errors can name the place.

use std::collections::BTreeMap;

use semver::Version;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

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

/// The most errors that are collected in one text.
const MOST_ERRORS: usize = 64;
/// The keys that every `plugin.toml` has, with values that are valid.
const REQUIRED: [(&str, &str); 2] = [("name", "plugin"), ("version", "0.0.0")];

impl ProjectFile {
    /// Parses what can be parsed of the text of a `plugin.toml`, and returns an error for each entry that is left out
    /// because it is not of the expected form. There is no file if the text is not TOML.
    pub(crate) fn parse_most(text: &str) -> (Option<ProjectFile>, Vec<FormError>) {
        let mut table = match DeTable::parse(text) {
            Ok(table) => table,
            Err(error) => return (None, vec![FormError::new(&error)]),
        };
        let mut missing = REQUIRED.to_vec();
        missing.retain(|(key, _)| !table.get_ref().contains_key(*key));
        let mut errors = Vec::new();
        let mut file = None;
        while file.is_none() && errors.len() < MOST_ERRORS {
            insert_required(table.get_mut());
            match ProjectFile::deserialize(Deserializer::from(table.clone())) {
                Ok(parsed) => file = Some(parsed),
                Err(error) => {
                    let error = FormError::new(&error);
                    let is_removed = remove_entry(table.get_mut(), error.offset);
                    errors.push(error);
                    if !is_removed {
                        break;
                    }
                }
            }
        }
        // A key that is not known is probably one of these, misspelt.
        if !errors.iter().any(FormError::is_unknown_key) {
            errors.extend(missing.iter().map(|(key, _)| FormError {
                offset: 0,
                message: format!("`{key}` is missing"),
            }));
        }
        (file, errors)
    }
}

/// Inserts those of the required keys that are not there, because they were left out or never were.
fn insert_required(table: &mut DeTable<'_>) {
    for (key, value) in REQUIRED {
        if !table.contains_key(key) {
            let value = DeValue::String(value.into());
            table.insert(Spanned::new(0..0, key.into()), Spanned::new(0..0, value));
        }
    }
}

/// Removes the innermost entry whose key or value is at this place of the text. Returns whether there is one.
fn remove_entry(table: &mut DeTable<'_>, offset: usize) -> bool {
    for (_, value) in table.iter_mut() {
        if let DeValue::Table(inner) = value.get_mut()
            && remove_entry(inner, offset)
        {
            return true;
        }
    }
    let mut entries = table.iter();
    let entry =
        entries.find(|(key, value)| key.span().contains(&offset) || value.span().contains(&offset));
    let key = entry.map(|(key, _)| key.get_ref().to_string());
    key.is_some_and(|key| table.remove(key.as_str()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_another_form_are_left_out_and_reported_one_by_one() {
        let text = "name = 5\nversion = '1.0.0'\nboards = [\"a\", 1]\nvendr = 'x'\n[build]\nlanguage = 'cobol'\n[capabilities]\nstor = 'x'\n\
                    clock = 'y'\n[limits]\ncpu_ms = -1\n";
        let (file, errors) = ProjectFile::parse_most(text);
        let mut places: Vec<_> = errors.iter().map(|error| &text[error.offset..]).collect();
        places.sort_by_key(|rest| std::cmp::Reverse(rest.len()));
        for (place, expected) in places
            .iter()
            .zip(["5", "1]", "vendr", "'cobol'", "stor", "-1"])
        {
            assert!(place.starts_with(expected), "{place} and not {expected}");
        }
        assert_eq!(errors.len(), 6, "{errors:?}");
        let file = file.unwrap();
        assert_eq!((file.capabilities.len(), file.limits.len()), (1, 0));

        let (file, errors) = ProjectFile::parse_most("events = 5");
        let messages: Vec<_> = errors.iter().map(|error| &*error.message).collect();
        assert!(file.is_some() && messages.len() == 3, "{messages:?}");
        assert_eq!(messages[1..], ["`name` is missing", "`version` is missing"]);

        let (file, errors) = ProjectFile::parse_most("name = \nversion = 5");
        assert!(file.is_none() && errors.len() == 1, "{errors:?}");
    }

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
