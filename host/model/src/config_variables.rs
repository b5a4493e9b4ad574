//! The configuration variables of a target state: one table of keys, types and defaults (device
//! behaviour 4.8), and one function to read each type.
//!
//! A value that does not read as its type falls back to the default; it never makes a target invalid.

use std::collections::BTreeMap;

use crate::{Branding, truthy_text};

/// How a value is read and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// True as [`truthy_text`] has it, else false; so `"1"` equals `"true"`.
    Bool,
    /// A whole number; most are milliseconds.
    Int,
    /// Taken as it is.
    Text,
}

/// One variable that means something to this supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Without the prefix that the cloud's form has.
    pub key: &'static str,
    pub kind: VariableKind,
    /// What holds where it is not set, or not readable.
    pub default: &'static str,
    /// A change takes effect with the next reboot.
    pub needs_reboot: bool,
}

/// All variables with a fixed key. Keys that begin with [`HOST_PREFIXES`] are taken too.
pub const VARIABLES: &[Variable] = &[
    int("SUPERVISOR_POLL_INTERVAL", "900000"),
    bool("SUPERVISOR_INSTANT_UPDATE_TRIGGER", "true"),
    bool("SUPERVISOR_LOCAL_MODE", "false"),
    bool("SUPERVISOR_CONNECTIVITY_CHECK", "true"),
    bool("SUPERVISOR_LOG_CONTROL", "true"),
    bool("SUPERVISOR_VPN_CONTROL", "true"),
    int("SUPERVISOR_API_REQUEST_TIMEOUT", "59000"),
    bool("SUPERVISOR_DELTA", "false"),
    int("SUPERVISOR_DELTA_REQUEST_TIMEOUT", "59000"),
    int("SUPERVISOR_DELTA_APPLY_TIMEOUT", "0"),
    int("SUPERVISOR_DELTA_RETRY_COUNT", "30"),
    int("SUPERVISOR_DELTA_RETRY_INTERVAL", "10000"),
    int("SUPERVISOR_DELTA_VERSION", "2"),
    bool("SUPERVISOR_OVERRIDE_LOCK", "false"),
    Variable {
        needs_reboot: true,
        ..bool("SUPERVISOR_PERSISTENT_LOGGING", "false")
    },
    bool("SUPERVISOR_HARDWARE_METRICS", "true"),
    Variable {
        kind: VariableKind::Text,
        ..bool("HOST_FIREWALL_MODE", "off")
    },
    bool("HOST_DISCOVERABILITY", "true"),
];

/// Beginnings of keys that are about the board: any such key is kept, as text and without a default.
pub const HOST_PREFIXES: &[&str] = &[
    "HOST_CONFIG_",
    "HOST_SPLASH_",
    "HOST_EXTLINUX_",
    "HOST_ODMDATA_",
    "HOST_CONFIGFS_",
];

/// Whether a variable is about the boot configuration of the board.
#[must_use]
pub fn is_boot_config(key: &str) -> bool {
    let mut prefixes = HOST_PREFIXES.iter();
    prefixes.any(|prefix| key.len() > prefix.len() && key.starts_with(prefix))
}

const fn bool(key: &'static str, default: &'static str) -> Variable {
    Variable {
        key,
        kind: VariableKind::Bool,
        default,
        needs_reboot: false,
    }
}

const fn int(key: &'static str, default: &'static str) -> Variable {
    Variable {
        kind: VariableKind::Int,
        ..bool(key, default)
    }
}

/// The row of `key`, if it has one.
#[must_use]
pub fn variable(key: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.key == key)
}

/// The prefixes that a key may come with.
#[must_use]
pub fn prefixes(branding: &Branding) -> Vec<String> {
    let mut prefixes = vec![branding.env_prefix.clone()];
    prefixes.extend(branding.aliases.iter().cloned());
    prefixes
}

/// Strips the first of `prefixes` that a key has, and drops keys that mean nothing here. Where a key
/// comes both with and without a prefix, the one without it wins.
#[must_use]
pub fn known(given: BTreeMap<String, String>, prefixes: &[String]) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    for (key, value) in &given {
        let bare = prefixes
            .iter()
            .filter(|prefix| !prefix.is_empty())
            .find_map(|prefix| key.strip_prefix(prefix.as_str()));
        let (bare, shadowed) = match bare {
            Some(bare) => (bare, given.contains_key(bare)),
            None => (key.as_str(), false),
        };
        let means_something = variable(bare).is_some() || is_boot_config(bare);
        if means_something && !shadowed {
            known.insert(bare.to_owned(), value.clone());
        }
    }
    known
}

/// `config`, and the default of every variable that it does not set.
#[must_use]
pub fn with_defaults(config: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut full: BTreeMap<String, String> = VARIABLES
        .iter()
        .map(|variable| (variable.key.to_owned(), variable.default.to_owned()))
        .collect();
    full.extend(config.clone());
    full
}

/// The value of a boolean variable; its default where it is not set, false where it is empty.
#[must_use]
pub fn flag(config: &BTreeMap<String, String>, key: &str) -> bool {
    let default = variable(key).map_or("", |variable| variable.default);
    truthy_text(config.get(key).map_or(default, String::as_str))
}

/// The value of an integer variable; its default where it is not set, empty or not a number.
#[must_use]
pub fn number(config: &BTreeMap<String, String>, key: &str) -> i64 {
    let default = variable(key).map_or("", |variable| variable.default);
    config
        .get(key)
        .and_then(|text| text.trim().parse().ok())
        .or_else(|| default.parse().ok())
        .unwrap_or_default()
}

/// The value of a text variable; its default where it is not set.
#[must_use]
pub fn text<'a>(config: &'a BTreeMap<String, String>, key: &str) -> &'a str {
    let default = variable(key).map_or("", |variable| variable.default);
    config.get(key).map_or(default, String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn prefixes_are_stripped_and_unknown_keys_are_dropped() {
        let given = config(&[
            ("PLATFORM_SUPERVISOR_DELTA", "1"),
            ("OLD_SUPERVISOR_POLL_INTERVAL", "60000"),
            ("HOST_CONFIG_gpu_mem", "16"),
            ("PLATFORM_HOST_CONFIG_dtparam", "\"spi=on\""),
            ("HOST_CONFIG_", "nothing named"),
            ("SOMETHING_ELSE", "x"),
        ]);
        let branding = Branding {
            aliases: vec!["OLD_".into()],
            ..Branding::default()
        };
        assert_eq!(
            known(given, &prefixes(&branding)),
            config(&[
                ("SUPERVISOR_DELTA", "1"),
                ("SUPERVISOR_POLL_INTERVAL", "60000"),
                ("HOST_CONFIG_gpu_mem", "16"),
                ("HOST_CONFIG_dtparam", "\"spi=on\""),
            ])
        );
    }

    #[test]
    fn a_key_without_prefix_wins_over_the_same_with_one() {
        let given = config(&[
            ("PLATFORM_SUPERVISOR_DELTA", "1"),
            ("SUPERVISOR_DELTA", "0"),
            ("ZZ_SUPERVISOR_DELTA", "1"),
        ]);
        assert_eq!(
            known(given, &["PLATFORM_".into(), "ZZ_".into()]),
            config(&[("SUPERVISOR_DELTA", "0")])
        );
    }

    #[test]
    fn unreadable_values_fall_back_to_the_default() {
        let set = config(&[
            ("SUPERVISOR_POLL_INTERVAL", "soon"),
            ("SUPERVISOR_DELTA_VERSION", ""),
            ("SUPERVISOR_VPN_CONTROL", ""),
        ]);
        assert_eq!(number(&set, "SUPERVISOR_POLL_INTERVAL"), 900_000);
        assert_eq!(number(&set, "SUPERVISOR_DELTA_VERSION"), 2);
        assert!(!flag(&set, "SUPERVISOR_VPN_CONTROL"), "empty is false");
        assert!(flag(&config(&[]), "SUPERVISOR_VPN_CONTROL"));
        assert_eq!(text(&set, "HOST_FIREWALL_MODE"), "off");
    }

    #[test]
    fn every_default_reads_as_its_kind() {
        for variable in VARIABLES {
            match variable.kind {
                VariableKind::Int => assert!(variable.default.parse::<i64>().is_ok()),
                VariableKind::Bool => assert!(["true", "false"].contains(&variable.default)),
                VariableKind::Text => {}
            }
        }
    }
}
