//! The configuration variables of a target state: one table of keys, types and defaults
//! (docs/spec/device.md#config-variables), and one function to read each type.
//!
//! A value that does not read as its type is replaced by the default, and a number that is out of bounds by the bound;
//! [`problems`] reports it. Neither makes a target invalid.

use std::collections::BTreeMap;

use crate::os_update::EXPECTED_BUNDLE;
use crate::{Branding, DesiredOs, OS_BUNDLE, OS_VERSION, OsBundle, OsVersion, read_flag};

/// How a value is read and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// A flag, as [`read_flag`] reads it; so `"1"` equals `"true"`.
    Bool,
    /// A whole number between these two, inclusive; most are milliseconds.
    Int(i64, i64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A version of the host's operating system, or empty.
    OsVersion,
    /// The location of such a version, or empty.
    OsBundle,
}

/// One variable that has a meaning for this supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// The variable's name, without the prefix that it has in the cloud.
    pub key: &'static str,
    /// The possible values; any other counts as not set.
    pub kind: VariableKind,
    /// The value if it is not set, or unreadable.
    pub default: &'static str,
    /// A change takes effect with the next reboot.
    pub needs_reboot: bool,
}

/// All variables with a fixed key. Keys that begin with [`HOST_PREFIXES`] are accepted too.
pub const VARIABLES: &[Variable] = &[
    // Polling more often than once a second is a flood, and less often than once a week makes a
    // device useless.
    int("SUPERVISOR_POLL_INTERVAL", "900000", 1000, 7 * 86_400_000),
    bool("SUPERVISOR_INSTANT_UPDATE_TRIGGER", "true"),
    bool("SUPERVISOR_LOCAL_MODE", "false"),
    bool("SUPERVISOR_CONNECTIVITY_CHECK", "true"),
    bool("SUPERVISOR_LOG_CONTROL", "true"),
    bool("SUPERVISOR_VPN_CONTROL", "true"),
    int("SUPERVISOR_API_REQUEST_TIMEOUT", "59000", 1000, 3_600_000),
    bool("SUPERVISOR_DELTA", "false"),
    int("SUPERVISOR_DELTA_REQUEST_TIMEOUT", "59000", 1000, 3_600_000),
    int("SUPERVISOR_DELTA_APPLY_TIMEOUT", "0", 0, 86_400_000),
    int("SUPERVISOR_DELTA_RETRY_COUNT", "30", 0, 1000),
    int("SUPERVISOR_DELTA_RETRY_INTERVAL", "10000", 100, 3_600_000),
    int("SUPERVISOR_DELTA_VERSION", "2", 2, 3),
    bool("SUPERVISOR_OVERRIDE_LOCK", "false"),
    Variable {
        needs_reboot: true,
        ..bool("SUPERVISOR_PERSISTENT_LOGGING", "false")
    },
    bool("SUPERVISOR_HARDWARE_METRICS", "true"),
    // A day is longer than any monitored process takes.
    int("SUPERVISOR_UPDATE_HEALTH_TIME", "0", 0, 86_400_000),
    Variable {
        kind: VariableKind::OsVersion,
        ..bool(OS_VERSION, "")
    },
    Variable {
        kind: VariableKind::OsBundle,
        ..bool(OS_BUNDLE, "")
    },
    int(
        "SUPERVISOR_OS_UPDATE_HEALTH_TIME",
        "900000",
        1000,
        86_400_000,
    ),
    Variable {
        kind: VariableKind::Word(&["on", "off", "auto"]),
        ..bool("HOST_FIREWALL_MODE", "off")
    },
    bool("HOST_DISCOVERABILITY", "true"),
];

/// Prefixes of keys that concern the board: any such key is kept, as text and without a default.
pub const HOST_PREFIXES: &[&str] = &[
    "HOST_CONFIG_",
    "HOST_SPLASH_",
    "HOST_EXTLINUX_",
    "HOST_ODMDATA_",
    "HOST_CONFIGFS_",
];

/// The variable that overrides update locks, and its former name.
const OVERRIDE_LOCK: &str = "SUPERVISOR_OVERRIDE_LOCK";
const LEGACY_OVERRIDE_LOCK: &str = "OVERRIDE_LOCK";

/// Returns whether a variable concerns the boot configuration of the board.
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

const fn int(key: &'static str, default: &'static str, least: i64, most: i64) -> Variable {
    Variable {
        kind: VariableKind::Int(least, most),
        ..bool(key, default)
    }
}

/// Returns the row of `key`, if it has one.
#[must_use]
pub fn variable(key: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.key == key)
}

/// Returns the prefixes that a key may have.
#[must_use]
pub fn prefixes(branding: &Branding) -> Vec<String> {
    let mut prefixes = vec![branding.env_prefix.clone()];
    prefixes.extend(branding.aliases.iter().cloned());
    prefixes
}

/// Strips the first of `prefixes` that a key has, and drops unknown keys. If a key is given both
/// with and without a prefix, the one without it takes precedence.
#[must_use]
pub fn retain_known(
    given: BTreeMap<String, String>,
    prefixes: &[String],
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let mut legacy = None;
    for (key, value) in &given {
        let bare = prefixes
            .iter()
            .filter(|prefix| !prefix.is_empty())
            .find_map(|prefix| key.strip_prefix(prefix.as_str()));
        let (bare, shadowed) = match bare {
            Some(bare) => (bare, given.contains_key(bare)),
            None => (key.as_str(), false),
        };
        // The former name (docs/spec/device.md#locks-override).
        if bare == LEGACY_OVERRIDE_LOCK {
            legacy = Some(value.clone());
            continue;
        }
        let means_something = variable(bare).is_some() || is_boot_config(bare);
        if means_something && !shadowed {
            variables.insert(bare.to_owned(), value.clone());
        }
    }
    if let Some(value) = legacy {
        variables.entry(OVERRIDE_LOCK.to_owned()).or_insert(value);
    }
    variables
}

/// Returns `config` with the default of every variable that it does not set.
#[must_use]
pub fn with_defaults(config: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut full: BTreeMap<String, String> = VARIABLES
        .iter()
        .map(|variable| (variable.key.to_owned(), variable.default.to_owned()))
        .collect();
    full.extend(config.clone());
    full
}

impl Variable {
    /// Returns the expected form of an invalid value, and the value that is used instead; `None` if
    /// it is used unchanged.
    fn refuses(&self, value: &str) -> Option<(String, String)> {
        let expected = match self.kind {
            VariableKind::Bool if read_flag(value).is_none() => "`true` or `false`".to_owned(),
            VariableKind::Word(words) if !words.contains(&value) => {
                format!("one of `{}`", words.join("`, `"))
            }
            VariableKind::Int(least, most) => match value.trim().parse::<i64>() {
                Err(_) => "a whole number".to_owned(),
                Ok(number) if (least..=most).contains(&number) => return None,
                Ok(number) => {
                    let bound = number.clamp(least, most).to_string();
                    return Some((format!("from {least} to {most}"), bound));
                }
            },
            VariableKind::OsVersion if !value.is_empty() => match value.parse::<OsVersion>() {
                Ok(_) => return None,
                Err(error) => error.expected.to_owned(),
            },
            VariableKind::OsBundle if !value.is_empty() && value.parse::<OsBundle>().is_err() => {
                EXPECTED_BUNDLE.to_owned()
            }
            VariableKind::Bool
            | VariableKind::Word(_)
            | VariableKind::OsVersion
            | VariableKind::OsBundle => return None,
        };
        Some((expected, self.default.to_owned()))
    }
}

/// Returns the value of a boolean variable; its default if it is not set or unreadable, false if it
/// is empty.
#[must_use]
pub fn flag(config: &BTreeMap<String, String>, key: &str) -> bool {
    read_flag(&text(config, key)).unwrap_or_default()
}

/// Returns the value of an integer variable, limited to its bounds; its default if it is not set,
/// empty or not a number.
#[must_use]
pub fn number(config: &BTreeMap<String, String>, key: &str) -> i64 {
    text(config, key).trim().parse().unwrap_or_default()
}

/// Returns the effective value of a variable: its default if it is not set, and a replacement if the value is invalid.
#[must_use]
pub fn text(config: &BTreeMap<String, String>, key: &str) -> String {
    let Some(variable) = variable(key) else {
        return String::new();
    };
    let value = config.get(key).map_or(variable.default, String::as_str);
    match variable.refuses(value) {
        Some((_, instead)) => instead,
        None => value.to_owned(),
    }
}

/// Returns warnings about the values in `config` that are replaced, one sentence each, with the replacement.
#[must_use]
pub fn problems(config: &BTreeMap<String, String>) -> Vec<String> {
    let problem = |(key, value): (&String, &String)| {
        let (expected, instead) = variable(key)?.refuses(value)?;
        let excerpt = crate::excerpt::cut(value);
        let instead = match instead.as_str() {
            "" => "it is not used".to_owned(),
            instead => format!("`{instead}` is used instead"),
        };
        Some(format!(
            "`{key}` is `{excerpt}`, which is not {expected}: {instead}"
        ))
    };
    let mut problems: Vec<String> = config.iter().filter_map(problem).collect();
    problems.extend(DesiredOs::problem(config));
    problems
}

#[cfg(test)]
mod tests;
