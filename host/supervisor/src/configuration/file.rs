//! The configuration file, and the place of each error in it: the file, the line, the table and the key.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use plugin_manifest::FormError;
use toml::de::{DeTable, DeValue};

use crate::settings::Settings;

/// A setting whose value is not allowed, in the file, in a flag or in an environment variable.
#[derive(Debug, thiserror::Error)]
#[error("{}{reason}", prefix(table.as_slice(), key))]
pub(super) struct InvalidSetting {
    table: Option<&'static str>,
    key: &'static str,
    /// What is wrong, and what is allowed.
    reason: String,
}

impl InvalidSetting {
    /// Creates the error for a key outside of tables.
    pub(super) fn new(key: &'static str, reason: impl Into<String>) -> InvalidSetting {
        InvalidSetting {
            table: None,
            key,
            reason: reason.into(),
        }
    }

    /// Creates the error for a key of a table.
    pub(super) fn in_table(
        table: &'static str,
        key: &'static str,
        reason: impl Into<String>,
    ) -> InvalidSetting {
        InvalidSetting {
            table: Some(table),
            ..InvalidSetting::new(key, reason)
        }
    }

    /// Returns the key that a flag or an environment variable may have set; `None` for keys of tables, which have
    /// neither.
    pub(super) fn flag(&self) -> Option<&'static str> {
        match self.table {
            None => Some(self.key),
            Some(_) => None,
        }
    }
}

/// The text of a configuration file.
pub(super) struct ConfigurationFile {
    path: PathBuf,
    text: String,
}

impl ConfigurationFile {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or is not text.
    pub(super) fn read(path: &Path) -> Result<ConfigurationFile> {
        let text = fs::read_to_string(path).with_context(|| {
            format!("failed to read the configuration file `{}`", path.display())
        })?;
        Ok(ConfigurationFile::new(path, text))
    }

    pub(super) fn new(path: &Path, text: String) -> ConfigurationFile {
        ConfigurationFile {
            path: path.to_owned(),
            text,
        }
    }

    /// Returns the settings in it.
    ///
    /// # Errors
    /// It is not TOML, or has an unknown key or a value of another kind: `FILE:LINE: [table] key: ` and the reason.
    pub(super) fn settings(&self) -> Result<Settings> {
        toml::from_str(&self.text).map_err(|error| {
            let reason = FormError::new(&error).message;
            let Some(span) = error.span() else {
                return anyhow!("{}: {reason}", self.path.display());
            };
            let keys = self.keys_at(span.start);
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let keys = match keys.split_last() {
                Some((key, tables)) => prefix(tables, key),
                // The error is one of TOML's form.
                None => String::new(),
            };
            anyhow!("{}: {keys}{reason}", self.place(span.start))
        })
    }

    /// Returns the place of a setting, as `FILE:LINE`; `None` if the file does not have it.
    pub(super) fn place_of(&self, setting: &InvalidSetting) -> Option<String> {
        let document = DeTable::parse(&self.text).ok()?;
        let mut table = document.get_ref();
        if let Some(name) = setting.table {
            let (_, value) = table.iter().find(|(key, _)| **key.get_ref() == *name)?;
            table = value.get_ref().as_table()?;
        }
        let (key, _) = table
            .iter()
            .find(|(key, _)| **key.get_ref() == *setting.key)?;
        Some(self.place(key.span().start))
    }

    /// Returns a position in bytes as `FILE:LINE`.
    fn place(&self, position: usize) -> String {
        let before = self.text.get(..position).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }

    /// Returns the tables and the key at a position; nothing if the file is not TOML, or if no key is there.
    fn keys_at(&self, position: usize) -> Vec<String> {
        let document = DeTable::parse(&self.text);
        let keys = document.ok().and_then(|document| {
            let keys = keys_at(document.get_ref(), position)?;
            Some(keys.into_iter().rev().collect())
        });
        keys.unwrap_or_default()
    }
}

/// Returns the key at a position, and then the tables around it from the inside out.
fn keys_at(table: &DeTable<'_>, position: usize) -> Option<Vec<String>> {
    table.iter().find_map(|(key, value)| {
        // The position of a table is that of its header, so what is in the table comes first.
        let below = match value.get_ref() {
            DeValue::Table(table) => keys_at(table, position),
            DeValue::Array(values) => values
                .iter()
                .find_map(|value| keys_at(value.get_ref().as_table()?, position)),
            _ => None,
        };
        let is_here = key.span().contains(&position) || value.span().contains(&position);
        let mut keys = below.or_else(|| is_here.then(Vec::new))?;
        keys.push(key.get_ref().clone().into_owned());
        Some(keys)
    })
}

/// Returns the beginning of an error about a key: `[table] key: `.
fn prefix(tables: &[&str], key: &str) -> String {
    if tables.is_empty() {
        format!("{key}: ")
    } else {
        format!("[{}] {key}: ", tables.join("."))
    }
}
