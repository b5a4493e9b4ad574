//! What this device lets its plugins have. Nothing is granted that is not written here.
//!
//! ```toml
//! [plugins.led-blink]
//! grants = ["led"]
//! leds = ["ACT"]              # only these LEDs; all where it is left out
//!
//! [plugins.tags]
//! grants = ["cloud"]
//! records = ["device_tag"]    # these kinds of records of the cloud; none where it is left out
//!
//! [plugins.vpn]
//! grants = ["units", "files"]
//! units = ["openvpn.service"] # no others
//! files = [{ host = "run/openvpn", guest = "/vpn", optional = true }]
//!
//! [plugins.exporter]
//! grants = ["files", "clock"]
//! files = [{ host = "/mnt/data/export", guest = "/export", write = true }]
//! # a path that is not absolute is below the host's root folder
//! # files = [{ host = "mnt/boot/splash", guest = "/splash", create = true }]
//! limits = { memory_mib = 8 }
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use os::UnitName;
use serde::{Deserialize, Deserializer};

use crate::capability::Capability;
use crate::limits::Asked;

/// The largest policy file, in bytes.
const SIZE: u64 = 1 << 20;

/// The policy of the device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    #[serde(default)]
    plugins: BTreeMap<String, Grants>,
}

/// What one plugin gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grants {
    #[serde(default)]
    pub(crate) grants: BTreeSet<Capability>,
    /// The LEDs that `led` gives; all of the device's where it is left out.
    pub(crate) leds: Option<BTreeSet<String>>,
    /// The kinds of records that `cloud` reaches.
    #[serde(default)]
    pub(crate) records: BTreeSet<String>,
    /// The units that `units` gives; none where it is left out.
    #[serde(default, deserialize_with = "unit_names")]
    pub(crate) units: BTreeSet<UnitName>,
    /// The folders that `files` gives.
    #[serde(default)]
    pub(crate) files: Vec<Folder>,
    #[serde(default)]
    pub(crate) limits: Asked,
}

/// A folder of the host that a plugin sees.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Folder {
    /// Where it is: absolute as this process sees it, relative below the host's root folder.
    pub(crate) host: PathBuf,
    /// Where the plugin sees it.
    pub(crate) guest: String,
    /// Whether the plugin may change what is in it.
    #[serde(default)]
    pub(crate) write: bool,
    /// Whether it is made where it is missing. One that is missing, and cannot be made, the plugin does
    /// not see; without this, a missing folder keeps the plugin's calls from being made.
    #[serde(default)]
    pub(crate) create: bool,
    /// Whether the plugin, where the folder is missing, is called all the same and does not see it.
    #[serde(default)]
    pub(crate) optional: bool,
}

fn unit_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<UnitName>, D::Error> {
    Vec::<String>::deserialize(deserializer)?
        .iter()
        .map(|name| name.parse().map_err(serde::de::Error::custom))
        .collect()
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It cannot be read.
    #[error("cannot read the policy `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is too large.
    #[error("the policy `{}` has more than {SIZE} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not the TOML that it should be; the source says in which line.
    #[error("the policy `{}` is invalid", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        source: Box<toml::de::Error>,
    },
    /// Something in it cannot be had.
    #[error("the policy `{}` is invalid: `[plugins.{plugin}]`: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Whose part of it.
        plugin: String,
        /// What is wrong.
        reason: String,
    },
}

impl Policy {
    /// Reads the policy at `path`. One that is not there grants nothing.
    pub(crate) fn read(path: &Path) -> Result<Policy, PolicyError> {
        let failed = |source| PolicyError::Read {
            path: path.to_owned(),
            source,
        };
        match std::fs::metadata(path) {
            Ok(meta) if meta.len() > SIZE => {
                return Err(PolicyError::TooLarge {
                    path: path.to_owned(),
                });
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                tracing::info!(
                    "no policy at `{}`: plugins get no capability",
                    path.display()
                );
                return Ok(Policy::default());
            }
            Err(error) => return Err(failed(error)),
        }
        Policy::parse(path, &std::fs::read_to_string(path).map_err(failed)?)
    }

    fn parse(path: &Path, text: &str) -> Result<Policy, PolicyError> {
        let policy: Policy = toml::from_str(text).map_err(|source| PolicyError::Parse {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        for (plugin, grants) in &policy.plugins {
            if let Err(reason) = grants.check() {
                return Err(PolicyError::Invalid {
                    path: path.to_owned(),
                    plugin: plugin.clone(),
                    reason,
                });
            }
        }
        Ok(policy)
    }

    /// What the plugin of this name gets, with folders as this process sees them.
    pub(crate) fn of(&self, plugin: &str, host_root: &Path) -> Grants {
        let mut grants = self.plugins.get(plugin).cloned().unwrap_or_default();
        for folder in &mut grants.files {
            folder.host = host_root.join(&folder.host);
        }
        grants
    }
}

impl Grants {
    fn check(&self) -> Result<(), String> {
        self.limits.check().map_err(|error| error.to_string())?;
        for folder in &self.files {
            let mut parts = folder.host.components();
            if parts.clone().next().is_none() || parts.any(|part| part == Component::ParentDir) {
                return Err(format!(
                    "the folder `{}` is neither an absolute path nor one below the host's root",
                    folder.host.display()
                ));
            }
            if !folder.guest.starts_with('/') {
                return Err(format!(
                    "the folder `{}` of the plugin is not an absolute path",
                    folder.guest
                ));
            }
        }
        if !self.files.is_empty() && !self.grants.contains(&Capability::Files) {
            return Err("it names `files` without granting \"files\"".to_owned());
        }
        if !self.records.is_empty() && !self.grants.contains(&Capability::Cloud) {
            return Err("it names `records` without granting \"cloud\"".to_owned());
        }
        if !self.units.is_empty() && !self.grants.contains(&Capability::Units) {
            return Err("it names `units` without granting \"units\"".to_owned());
        }
        if self.leds.is_some() && !self.grants.contains(&Capability::Led) {
            return Err("it names `leds` without granting \"led\"".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Policy, String> {
        Policy::parse(Path::new("policy.toml"), text).map_err(|error| {
            let source = std::error::Error::source(&error)
                .map(ToString::to_string)
                .unwrap_or_default();
            format!("{error}\n{source}")
        })
    }

    #[test]
    fn nothing_is_granted_that_is_not_written() {
        let policy = parse("[plugins.a]\ngrants = [\"led\"]\nleds = [\"ACT\"]").unwrap();
        assert_eq!(policy.of("b", Path::new("/")), Grants::default());
        let granted = policy.of("a", Path::new("/")).grants;
        assert_eq!(granted, BTreeSet::from([Capability::Led]));
        assert_eq!(
            Policy::read(Path::new("/nowhere/policy.toml")).unwrap(),
            Policy::default()
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, expected) in [
            ("[plugins.a]\ngrant = [\"led\"]", "line 2, column 1"),
            ("[plugins.a]\ngrant = [\"led\"]", "unknown field `grant`"),
            ("[plugins.a]\n\ngrants = [\"gpio\"]", "line 3"),
            ("[plugin.a]", "unknown field `plugin`"),
            (
                "[plugins.a]\nlimits = { memory_mib = 64 }",
                "`[plugins.a]`: `memory_mib` is 64",
            ),
            ("[plugins.a]\nleds = []", "`leds` without granting \"led\""),
            (
                "[plugins.a]\nrecords = [\"device_tag\"]",
                "`records` without granting \"cloud\"",
            ),
            (
                "[plugins.a]\nfiles = [{ host = \"/a\", guest = \"/a\" }]",
                "`files` without granting",
            ),
            (
                "[plugins.a]\nunits = [\"a.service\"]",
                "`units` without granting \"units\"",
            ),
            (
                "[plugins.a]\ngrants = [\"units\"]\nunits = [\"*.service\"]",
                "line 3",
            ),
            (
                "[plugins.a]\ngrants = [\"units\"]\nunits = [\"a\"]",
                "`a` is not the name of a unit",
            ),
            (
                "[plugins.a]\ngrants = [\"files\"]\nfiles = [{ host = \"a/../..\", guest = \"/a\" }]",
                "`a/../..` is neither an absolute path nor",
            ),
            (
                "[plugins.a]\ngrants = [\"files\"]\nfiles = [{ host = \"\", guest = \"/a\" }]",
                "`` is neither an absolute path nor",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }
}
