//! What this device grants its plugins. Nothing is granted unless it is written here, and it is granted only to the
//! files that the section pins. A section that pins none is for the stock plugin of that name.
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
//! [plugins.weather]
//! grants = ["http"]
//! api = ["GET /v2/state/status", "POST /v3/acme/*"]  # no other routes; none where it is left out
//! serial = ["/dev/ttyUSB0"]    # no other ports; none where it is left out
//! gpio = [{ name = "relay", chip = "gpiochip0", line = 17, direction = "out" }] # no other lines
//! i2c = [{ name = "sensor", bus = 1, address = 0x48 }] # no other chips
//! http = ["api.weather.example"] # over TLS; no other hosts; none where it is left out
//!
//! [plugins.panel]
//! grants = ["actions"]
//! actions = ["acme-rails/set"] # these actions of other plugins; none where it is left out
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
//! boards = ["acme-*"]         # on these it takes precedence over providers for all boards
//! events = ["update-gate"]    # it is called for these events; for none where it is left out
//! hold_minutes = 120          # its gates hold up an update for no longer; an hour where it is left out
//! ```

mod file;
mod grants;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::bounds::LEAST_MEMORY;
use crate::keys::NamedKeys;
use crate::pins::Pin;
use crate::signature::Signatures;
use crate::stock::{StockPlugin, StockPlugins};

use file::parse;
pub use file::{PolicyError, policy_text};
pub(crate) use grants::Grants;

/// The policy of the device, with the stock plugins of its layout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) files: PolicyFiles,
    owner: OwnerPolicy,
    stock: StockPlugins,
}

/// The files that it is read from.
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
    /// Whether foreign code must not run if a wall around it is missing.
    #[serde(default)]
    require_confinement: bool,
    #[serde(default)]
    plugins: BTreeMap<String, Grants>,
    /// The keys of plugins' makers.
    #[serde(default)]
    keys: NamedKeys,
    #[serde(default)]
    bounds: BoundsOfAll,
    /// Who may sign targets does not concern plugins (`host/signed-targets` reads it).
    #[serde(default, rename = "targets")]
    _targets: IgnoredSection,
}

/// A section that is read elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct IgnoredSection;

impl<'de> Deserialize<'de> for IgnoredSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| IgnoredSection)
    }
}

/// The limits for all plugins together, if the owner sets them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundsOfAll {
    memory_mib: Option<u32>,
}

impl Policy {
    /// Creates a policy that grants nothing: in force until one is read.
    pub(crate) fn empty(files: PolicyFiles) -> Policy {
        Policy {
            files,
            ..Policy::default()
        }
    }

    /// Reads the policy and the list of stock plugins, if nobody else can have written them; with `anybodys`, their
    /// writers are not checked. A missing file grants or pins nothing.
    pub(crate) fn read(files: &PolicyFiles, anybodys: bool) -> Result<Policy, PolicyError> {
        let owner = policy_text(&files.owner, anybodys)?.unwrap_or_else(|| {
            let path = files.owner.display();
            tracing::info!(%path, "no policy at `{path}`: plugins get no capability");
            String::new()
        });
        let stock = policy_text(&files.stock, anybodys)?.unwrap_or_default();
        Policy::parse(files, &owner, &stock)
    }

    pub(crate) fn parse(
        files: &PolicyFiles,
        owner: &str,
        stock: &str,
    ) -> Result<Policy, PolicyError> {
        let owner: OwnerPolicy = parse(&files.owner, owner)?;
        let stock: StockPlugins = parse(&files.stock, stock)?;
        let invalid = |reason| PolicyError::Invalid {
            path: files.owner.clone(),
            reason,
        };
        for (plugin, grants) in &owner.plugins {
            let checked = grants.check();
            checked.map_err(|reason| invalid(format!("`[plugins.{plugin}]`: {reason}")))?;
        }
        let least = LEAST_MEMORY >> 20;
        if owner
            .bounds
            .memory_mib
            .is_some_and(|mib| (mib as usize) < least)
        {
            let reason = format!("`memory_mib` in `[bounds]` must be at least {least}");
            return Err(invalid(reason));
        }
        Ok(Policy {
            files: files.clone(),
            owner,
            stock,
        })
    }

    /// Returns the rule about missing walls of the policy in this file; without a file, nothing is required.
    pub(crate) fn requires_confinement(file: &Path, anybodys: bool) -> Result<bool, PolicyError> {
        let text = policy_text(file, anybodys)?.unwrap_or_default();
        let owner: OwnerPolicy = parse(file, &text)?;
        Ok(owner.require_confinement)
    }

    /// Returns the memory that all plugins get together, in bytes, if the owner sets it.
    pub(crate) fn memory_of_all(&self) -> Option<usize> {
        let mib = self.owner.bounds.memory_mib?;
        Some((mib as usize) << 20)
    }

    /// Returns the keys of plugins' makers.
    pub(crate) fn keys(&self) -> &NamedKeys {
        &self.owner.keys
    }

    /// Returns the grants of the file with this digest, name and signatures, with folders as this process sees them.
    ///
    /// # Errors
    /// If the name is not pinned to the file; says what its owner can do.
    pub(crate) fn grants(
        &self,
        plugin: &str,
        digest: &str,
        signatures: &Signatures,
        host_root: &Path,
    ) -> Result<Grants, String> {
        let own = self.pinning_section(plugin);
        let stock = self.stock.plugins.get(plugin);
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
        let policy = self.files.owner.display();
        let keys = keys.filter(|keys| !keys.is_empty());
        Err(match (own, keys, stock) {
            (Some(_), Some(keys), _) => {
                let reason = self.owner.keys.why_not_signed(keys, signatures);
                let keys: Vec<_> = keys.iter().map(|name| format!("`{name}`")).collect();
                let keys = keys.join(" or ");
                format!(
                    "the policy `{policy}` requires files of the plugin `{plugin}` to be signed with {keys}: {reason}; to trust this file anyway, add \"{digest}\" to `sha256` in [plugins.{plugin}]"
                )
            }
            (Some(_), None, _) => format!(
                "the policy `{policy}` pins other files of the plugin `{plugin}`; to trust this one as well, add \"{digest}\" to `sha256` in [plugins.{plugin}]"
            ),
            (None, _, Some(_)) => format!(
                "`{plugin}` is a stock plugin, and this is another file than the one that `{}` pins; to trust this one in its place, give the section `[plugins.{plugin}]` the line `sha256 = [\"{digest}\"]` in the policy `{policy}`",
                self.files.stock.display()
            ),
            (None, _, None) => format!(
                "the policy `{policy}` pins no file of a plugin `{plugin}`; to trust this one, give it a section `[plugins.{plugin}]` with the line `sha256 = [\"{digest}\"]` (`supervisor plugins trust FILE` prints all that it needs)"
            ),
        })
    }

    /// Returns the owner's section of this name if it pins files.
    fn pinning_section(&self, plugin: &str) -> Option<&Grants> {
        let section = self.owner.plugins.get(plugin)?;
        (section.sha256.is_some() || section.keys.is_some()).then_some(section)
    }

    /// Returns whether this name refers to a plugin of the layout: the layout has one, and the owner pins no other
    /// files to it.
    pub(crate) fn is_stock(&self, plugin: &str) -> bool {
        self.pinning_section(plugin).is_none() && self.stock.plugins.contains_key(plugin)
    }

    /// Returns the grants of a file that claims this name if pins are not required: whatever is written for the name,
    /// even if for another file.
    pub(crate) fn without_pin(&self, plugin: &str, host_root: &Path) -> Grants {
        self.gives(plugin, Pin::None, self.stock.plugins.get(plugin), host_root)
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
        // Which other files get the same does not concern this one.
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

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
