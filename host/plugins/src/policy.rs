//! What this device lets its plugins have. Nothing is granted that is not written here, and what is written
//! goes to the files that the section pins. A section that pins none is for the stock plugin of that name.
//!
//! ```toml
//! [plugins.led-blink]         # a stock plugin
//! grants = ["led"]
//! leds = ["ACT"]              # only these LEDs; all where it is left out
//!
//! [plugins.acme-tags]
//! sha256 = ["5f0c…"]          # these files and no others
//! routes = ["/v3/acme/*"]     # may answer these paths; none where it is left out
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
//!
//! # above all tables: refuse services, and compile nothing, where a wall around their processes is missing
//! # require_confinement = true
//!
//! [bounds]
//! memory_mib = 128            # of all plugins' calls together, in place of an eighth of the board's memory
//!
//! [keys.acme]
//! public = "RWQf6LRC…"        # of minisign
//!
//! [plugins.acme-light]
//! keys = ["acme"]             # what this key has signed under this name
//! provides = ["identify"]     # these actions; none where it is left out
//! boards = ["acme-*"]         # on these it goes before whoever provides them on all boards
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use os::UnitName;
use rustix::fs::OFlags;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::boards::BoardPatterns;
use crate::bounds::LEAST_MEMORY;
use crate::capability::Capability;
use crate::keys::NamedKeys;
use crate::limits::WrittenLimits;
use crate::manifest::Action;
use crate::owners::{self, OwnerError};
use crate::pins::{FileDigests, Pin, PinError};
use crate::route_grants::RouteGrants;
use crate::signature::Signatures;
use crate::stock::{StockPlugin, StockPlugins};

/// The largest policy file, in bytes.
const SIZE: u64 = 1 << 20;

/// The policy of the device, with the stock plugins of its layout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    files: PolicyFiles,
    owner: OwnerPolicy,
    stock: StockPlugins,
}

/// Where it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PolicyFiles {
    /// The owner's `policy.toml`.
    pub(crate) owner: PathBuf,
    /// The layout's `stock-plugins.toml`.
    pub(crate) stock: PathBuf,
}

/// What the device's owner has written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnerPolicy {
    /// Whether nothing foreign is run where a wall around it is missing.
    #[serde(default)]
    require_confinement: bool,
    #[serde(default)]
    plugins: BTreeMap<String, Grants>,
    /// The keys of plugins' makers.
    #[serde(default)]
    keys: NamedKeys,
    #[serde(default)]
    bounds: BoundsOfAll,
    /// Who may sign targets is no matter of plugins (`host/signed-targets` reads it).
    #[serde(default, rename = "targets")]
    _targets: OfOthers,
}

/// A section that somebody else reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct OfOthers;

impl<'de> Deserialize<'de> for OfOthers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| OfOthers)
    }
}

/// What all plugins may take together, where the owner says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundsOfAll {
    memory_mib: Option<u32>,
}

/// What one plugin gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grants {
    /// The files that get it; where this and `keys` are left out, the stock plugin of that name.
    pub(crate) sha256: Option<FileDigests>,
    /// The names of the keys whose signed files get it. A name that is not there, and a key that is revoked, pin
    /// nothing.
    pub(crate) keys: Option<BTreeSet<String>>,
    /// The paths that it may answer.
    #[serde(default)]
    pub(crate) routes: RouteGrants,
    /// The actions that it may provide.
    #[serde(default)]
    pub(crate) provides: BTreeSet<Action>,
    /// The boards on which it goes before a provider for all boards.
    #[serde(default)]
    pub(crate) boards: BoardPatterns,
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
    pub(crate) limits: WrittenLimits,
    /// Why the file gets it.
    #[serde(skip)]
    pub(crate) pin: Pin,
    /// Whether the layout ships with the file.
    #[serde(skip)]
    pub(crate) is_stock: bool,
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
    /// Somebody else could have written it.
    #[error("the policy is not read")]
    Owner(#[from] OwnerError),
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
    /// A bound in it is too small.
    #[error(
        "the policy `{}` is invalid: `memory_mib` in `[bounds]` must be at least {least}", path.display()
    )]
    Bound {
        /// The file.
        path: PathBuf,
        /// The least that can be had.
        least: usize,
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
    /// One that gives nothing to anybody: in force until one was read.
    pub(crate) fn empty(files: PolicyFiles) -> Policy {
        Policy {
            files,
            ..Policy::default()
        }
    }

    /// Reads the policy and the list of stock plugins, where nobody else can have written them; with `anybodys`,
    /// whoever has. One that is not there grants or pins nothing.
    pub(crate) fn read(files: &PolicyFiles, anybodys: bool) -> Result<Policy, PolicyError> {
        let owner = policy_text(&files.owner, anybodys)?.unwrap_or_else(|| {
            let path = files.owner.display();
            tracing::info!("no policy at `{path}`: plugins get no capability");
            String::new()
        });
        let stock = policy_text(&files.stock, anybodys)?.unwrap_or_default();
        Policy::parse(files, &owner, &stock)
    }

    fn parse(files: &PolicyFiles, owner: &str, stock: &str) -> Result<Policy, PolicyError> {
        let parsed = |path: &Path, source| PolicyError::Parse {
            path: path.to_owned(),
            source: Box::new(source),
        };
        let owner: OwnerPolicy =
            toml::from_str(owner).map_err(|error| parsed(&files.owner, error))?;
        let stock: StockPlugins =
            toml::from_str(stock).map_err(|error| parsed(&files.stock, error))?;
        for (plugin, grants) in &owner.plugins {
            if let Err(reason) = grants.check() {
                return Err(PolicyError::Invalid {
                    path: files.owner.clone(),
                    plugin: plugin.clone(),
                    reason,
                });
            }
        }
        let least = LEAST_MEMORY >> 20;
        if let Some(mib) = owner.bounds.memory_mib
            && (mib as usize) < least
        {
            let path = files.owner.clone();
            return Err(PolicyError::Bound { path, least });
        }
        Ok(Policy {
            files: files.clone(),
            owner,
            stock,
        })
    }

    /// What the policy in this file says of missing walls; nothing is required where there is none.
    pub(crate) fn requires_confinement(file: &Path, anybodys: bool) -> Result<bool, PolicyError> {
        if file.exists() && !anybodys {
            owners::check(file)?;
        }
        let Some(text) = read_text(file)? else {
            return Ok(false);
        };
        let parsed: Result<OwnerPolicy, _> = toml::from_str(&text);
        let owner = parsed.map_err(|source| PolicyError::Parse {
            path: file.to_owned(),
            source: Box::new(source),
        })?;
        Ok(owner.require_confinement)
    }

    /// The memory that all plugins have together, in bytes, where the owner says.
    pub(crate) fn memory_of_all(&self) -> Option<usize> {
        let mib = self.owner.bounds.memory_mib?;
        Some((mib as usize) << 20)
    }

    /// The keys of plugins' makers.
    pub(crate) fn keys(&self) -> &NamedKeys {
        &self.owner.keys
    }

    /// What the file of this digest gets that claims this name and is signed like this, with folders as this
    /// process sees them.
    ///
    /// # Errors
    /// Where the name is not pinned to the file.
    pub(crate) fn of(
        &self,
        plugin: &str,
        digest: &str,
        signatures: &Signatures,
        host_root: &Path,
    ) -> Result<Grants, PinError> {
        let section = self.owner.plugins.get(plugin);
        let own = section.filter(|section| section.sha256.is_some() || section.keys.is_some());
        let stock = self.stock.get(plugin);
        let keys = own.and_then(|section| section.keys.as_ref());
        if let Some(section) = own {
            let mut files = section.sha256.iter();
            let mut names = keys.into_iter().flatten();
            if files.any(|files| files.contain(digest)) {
                return Ok(self.gives(plugin, Pin::Digest, None, host_root));
            }
            if let Some(name) = names.find(|name| self.owner.keys.has_signed(name, signatures)) {
                return Ok(self.gives(plugin, Pin::Key(name.clone()), None, host_root));
            }
        } else if let Some(stock) = stock
            && stock.sha256.contain(digest)
        {
            return Ok(self.gives(plugin, Pin::Digest, Some(stock), host_root));
        }
        let (plugin, digest) = (plugin.to_owned(), digest.to_owned());
        let policy = self.files.owner.clone();
        let keys = keys.filter(|keys| !keys.is_empty());
        Err(match (own, keys, stock) {
            (Some(_), Some(keys), _) => {
                let reason = self.owner.keys.why_not_signed(keys, signatures);
                let keys: Vec<_> = keys.iter().map(|name| format!("`{name}`")).collect();
                PinError::NotSigned {
                    plugin,
                    keys: keys.join(" or "),
                    reason,
                    digest,
                    policy,
                }
            }
            (Some(_), None, _) => PinError::OtherFiles {
                plugin,
                digest,
                policy,
            },
            (None, _, Some(_)) => PinError::NotStock {
                plugin,
                digest,
                stock: self.files.stock.clone(),
                policy,
            },
            (None, _, None) => PinError::NoFile {
                plugin,
                digest,
                policy,
            },
        })
    }

    /// Whether this name stands for a plugin of the layout: it has one, and the owner pins no other files to it.
    pub(crate) fn is_stock(&self, plugin: &str) -> bool {
        let section = self.owner.plugins.get(plugin);
        let is_own = section.is_some_and(|own| own.sha256.is_some() || own.keys.is_some());
        !is_own && self.stock.get(plugin).is_some()
    }

    /// What a file gets that claims this name, where nobody asks for pins: what is written for the name, be it for
    /// another file.
    pub(crate) fn without_pin(&self, plugin: &str, host_root: &Path) -> Grants {
        self.gives(plugin, Pin::None, self.stock.get(plugin), host_root)
    }

    fn gives(
        &self,
        plugin: &str,
        pin: Pin,
        stock: Option<&StockPlugin>,
        host_root: &Path,
    ) -> Grants {
        let section = self.owner.plugins.get(plugin);
        let mut grants = section.cloned().unwrap_or_default();
        // Which other files get the same is no matter of this one's.
        (grants.sha256, grants.keys) = (None, None);
        grants.is_stock = stock.is_some() && pin != Pin::None;
        grants.pin = pin;
        if let Some(stock) = stock {
            grants.routes.extend(&stock.routes);
            grants.provides.extend(&stock.provides);
            grants.boards.extend(&stock.boards);
        }
        for folder in &mut grants.files {
            folder.host = host_root.join(&folder.host);
        }
        grants
    }
}

/// The text of the policy at `path`, where nobody else can have written it; with `anybodys`, whoever has. None where
/// there is no such file.
///
/// # Errors
/// [`PolicyError`] where it cannot be read, is too large, or could have been written by others.
pub fn policy_text(path: &Path, anybodys: bool) -> Result<Option<String>, PolicyError> {
    if path.exists() && !anybodys {
        owners::check(path)?;
    }
    read_text(path)
}

/// The text of the file at `path`; none where there is no such file.
fn read_text(path: &Path) -> Result<Option<String>, PolicyError> {
    let failed = |source| PolicyError::Read {
        path: path.to_owned(),
        source,
    };
    // Of a pipe nobody may ever write the end, and some devices have none: neither is waited for nor read.
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        let why = "it is no regular file: put one in its place";
        return Err(failed(std::io::Error::other(why)));
    }
    let mut bytes = Vec::new();
    file.take(SIZE + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > SIZE {
        return Err(PolicyError::TooLarge {
            path: path.to_owned(),
        });
    }
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|error| failed(std::io::Error::other(error)))
}

impl Grants {
    fn check(&self) -> Result<(), String> {
        self.limits.check().map_err(|error| error.to_string())?;
        if let Some(route) = self.routes.of_stock_plugins() {
            return Err(format!(
                "the route `{route}` reaches below `/v1` or `/v2`, where stock plugins answer and no others"
            ));
        }
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
mod fuzz_tests;
#[cfg(test)]
mod tests;
