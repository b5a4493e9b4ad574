//! Restoring the version of a plugin that served before.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use model::error_chain;
use semver::Version;

use crate::admission::{DeviceRules, PluginFile};
use crate::file_with_signature::{ReplaceError, replace};
use crate::kept::KeptVersions;
use crate::policy::{Policy, PolicyFiles, policy_text};
use crate::section_merge::with_digest;
use crate::settled_file::{bytes, plugin_files};
use crate::signature::{self, Signatures};
use plugin_manifest::Manifest;

/// A version that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    /// The plugin's file.
    pub file: PathBuf,
    /// The digest of the file now.
    pub digest: String,
    /// The version that the file has now.
    pub to: Version,
    /// The version that the file had; `None` if it was not a plugin.
    pub from: Option<Version>,
}

/// Why no version was restored.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// No version of any plugin is kept in the state folder: most likely it is not the supervisor's.
    #[error(
        "no version of any plugin is kept in the state folder `{}`: if the supervisor has another one, name it with \
         --state-dir, or give --config with the supervisor's configuration file",
        .0.display()
    )]
    NothingKept(PathBuf),
    /// The device has no plugin of that name.
    #[error("the device has no plugin `{plugin}`; it has {}", others.join(", "))]
    Unknown {
        /// The name.
        plugin: String,
        /// The names of its plugins, in backticks.
        others: Vec<String>,
    },
    /// The plugin's file and its signature are unchanged.
    #[error("the file of the plugin `{plugin}` is unchanged: {reason}")]
    Unchanged {
        /// The plugin's name.
        plugin: String,
        /// Why it could not go back, in words.
        reason: String,
    },
    /// The plugin's file is unchanged, but the signature next to it is not.
    #[error("the file of the plugin `{plugin}` is unchanged, but lost its signature: {reason}")]
    SignatureLost {
        /// The plugin's name.
        plugin: String,
        /// What failed, in words, and how to restore the signature.
        reason: String,
    },
}

/// The device on which a plugin goes back.
#[derive(Debug, Clone, Copy)]
pub struct RollbackFolders<'a> {
    /// The supervisor's state folder.
    pub state_dir: &'a Path,
    /// The folders of plugins.
    pub plugin_dirs: &'a [PathBuf],
    /// The policy file.
    pub policy: &'a Path,
    /// The list of the plugins that the layout ships with.
    pub stock_plugins: &'a Path,
    /// The host's root folder.
    pub host_root: &'a Path,
    /// Whether files need no pin.
    pub allow_unpinned: bool,
}

/// Restores into a plugin's file the version that served before its present one. If the present version cannot be
/// loaded, that is the version in use instead; otherwise it is the previous one. A running supervisor picks it up at
/// once. Doing it twice restores the present version.
///
/// # Errors
/// [`RollbackError`] if no version is kept to go back to, the policy does not let it be loaded, or the file cannot be
/// written.
pub fn rollback(plugin: &str, device: RollbackFolders<'_>) -> Result<Rollback, RollbackError> {
    let kept = KeptVersions::open(device.state_dir);
    if kept.files().is_empty() {
        return Err(RollbackError::NothingKept(device.state_dir.to_owned()));
    }
    let unchanged = |reason| RollbackError::Unchanged {
        plugin: plugin.to_owned(),
        reason,
    };
    let Some((file, latest)) = latest_of(plugin, &kept) else {
        let names = names(&kept, device.plugin_dirs);
        if !names.contains(plugin) {
            return Err(RollbackError::Unknown {
                plugin: plugin.to_owned(),
                others: names.iter().map(|name| format!("`{name}`")).collect(),
            });
        }
        return Err(unchanged(format!(
            "no earlier version of it is kept in the state folder `{}`: the supervisor keeps the versions that were in use from the plugin folders, except those that the device ships with",
            device.state_dir.display()
        )));
    };
    let found = replacement(&kept, file, latest, device);
    let Replacement { file, to, from } = found.map_err(unchanged)?;
    let signature = signature::file_beside(&to.component);
    let signature = signature::read(&signature)
        .map_err(|error| unchanged(format!("`{}` cannot be read: {error}", signature.display())))?;
    replace(&file, &to.wasm, signature.as_deref()).map_err(|error| match error {
        ReplaceError::Unchanged { .. } => unchanged(error.to_string()),
        ReplaceError::SignatureLost { .. } => RollbackError::SignatureLost {
            plugin: plugin.to_owned(),
            reason: error.to_string(),
        },
    })?;
    Ok(Rollback {
        file,
        digest: to.digest,
        to: to.manifest.version,
        from,
    })
}

/// What is written into which file.
struct Replacement {
    file: PathBuf,
    to: Candidate,
    from: Option<Version>,
}

/// A kept version.
struct Candidate {
    component: PathBuf,
    digest: String,
    wasm: Vec<u8>,
    manifest: Manifest,
}

/// Returns the file from which the plugin was in use, and the version of it that was in use most recently.
fn latest_of(plugin: &str, kept: &KeptVersions) -> Option<(PathBuf, Candidate)> {
    kept.files().into_iter().find_map(|file| {
        let latest = candidate(kept, kept.versions(&file)?.latest).ok()?;
        (latest.manifest.name == plugin).then_some((file, latest))
    })
}

/// Returns the names of the plugins that are in the plugin folders or were in use from there.
fn names(kept: &KeptVersions, plugin_dirs: &[PathBuf]) -> BTreeSet<String> {
    let were_in_use = kept.files().into_iter().filter_map(|file| {
        let latest = candidate(kept, kept.versions(&file)?.latest).ok()?;
        Some(latest.manifest.name)
    });
    let present = plugin_files(plugin_dirs, |_| false).files.into_iter();
    let present = present.filter_map(|(file, _)| {
        let (_, wasm) = bytes(&file).ok()?;
        Some(Manifest::from_wasm(&wasm).ok()?.name)
    });
    were_in_use.chain(present).collect()
}

/// Returns the version to go back to if the policy lets it be loaded: `latest` or, if `file` contains that, the version
/// before it.
fn replacement(
    kept: &KeptVersions,
    file: PathBuf,
    latest: Candidate,
    device: RollbackFolders<'_>,
) -> Result<Replacement, String> {
    let (_, present) = bytes(&file)?;
    let present_manifest = Manifest::from_wasm(&present).ok();
    let to = if compiled_code::digest(&present) == latest.digest {
        let before = kept.versions(&file).and_then(|versions| versions.before);
        let before = before.ok_or_else(|| {
            format!(
                "{} is the first version of it that was in use from `{}`",
                latest.manifest.version,
                file.display()
            )
        })?;
        candidate(kept, before)?
    } else {
        latest
    };
    let from = present_manifest.map(|manifest| manifest.version);
    may_be_loaded(&to, from.as_ref(), device)?;
    Ok(Replacement { file, to, from })
}

fn candidate(kept: &KeptVersions, digest: String) -> Result<Candidate, String> {
    let component = kept.component(&digest);
    let (_, wasm) = bytes(&component)?;
    if compiled_code::digest(&wasm) != digest {
        return Err(format!("`{}` is damaged", component.display()));
    }
    let manifest = Manifest::from_wasm(&wasm).map_err(|error| error_chain(&error))?;
    Ok(Candidate {
        component,
        digest,
        wasm,
        manifest,
    })
}

/// Checks that the policy lets a version be loaded in place of `from`. If its digest in the policy is all that is missing,
/// the error contains the section with the digest.
fn may_be_loaded(
    to: &Candidate,
    from: Option<&Version>,
    device: RollbackFolders<'_>,
) -> Result<(), String> {
    let files = PolicyFiles {
        owner: device.policy.to_owned(),
        stock: device.stock_plugins.to_owned(),
    };
    let policy =
        Policy::read(&files, device.allow_unpinned).map_err(|error| error_chain(&error))?;
    let Err(reason) = admit(&policy, to, from, device) else {
        return Ok(());
    };
    let name = &to.manifest.name;
    let read = |path: &Path| policy_text(path, device.allow_unpinned).ok().flatten();
    let owner = read(device.policy).unwrap_or_default();
    let stock = read(device.stock_plugins).unwrap_or_default();
    let (merged, section) = with_digest(&owner, name, &to.digest);
    let would_be_admitted = Policy::parse(&files, &merged, &stock)
        .is_ok_and(|policy| admit(&policy, to, from, device).is_ok());
    if !would_be_admitted {
        return Err(reason);
    }
    Err(format!(
        "{reason}; that is this section, which you put in place of the present one before you repeat the command:\n\n{section}"
    ))
}

fn admit(
    policy: &Policy,
    to: &Candidate,
    from: Option<&Version>,
    device: RollbackFolders<'_>,
) -> Result<(), String> {
    let keys: Vec<_> = policy.keys().public_keys().cloned().collect();
    let file = PluginFile {
        manifest: &to.manifest,
        digest: &to.digest,
        signatures: &Signatures::load(&to.component, &to.wasm, &keys),
    };
    let device = DeviceRules {
        host_root: device.host_root,
        allow_unpinned: device.allow_unpinned,
    };
    policy.admit(file, device, from).map(|_| ())
}
