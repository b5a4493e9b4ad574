//! Putting the version of a plugin back that served before.

use std::fs;
use std::path::{Path, PathBuf};

use semver::Version;

use crate::embed::replace;
use crate::failure::chain;
use crate::kept::KeptVersions;
use crate::policy::{DeviceRules, PluginFile, Policy, PolicyFiles};
use crate::settled_file::bytes;
use crate::signature::{self, Signatures};
use plugin_manifest::Manifest;

/// A version that was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    /// The plugin's file.
    pub file: PathBuf,
    /// The version that it has now.
    pub to: Version,
    /// The version that it had; none where it was no plugin.
    pub from: Option<Version>,
}

/// Why no version was put back. The plugin's file is as it was.
#[derive(Debug, thiserror::Error)]
#[error("the plugin `{plugin}` stays as it is: {reason}")]
pub struct RollbackError {
    plugin: String,
    reason: String,
}

/// The device whose plugin goes back.
#[derive(Debug, Clone, Copy)]
pub struct RollbackFolders<'a> {
    /// The supervisor's folder of state.
    pub state_dir: &'a Path,
    /// The policy file.
    pub policy: &'a Path,
    /// The list of the plugins that the layout ships with.
    pub stock_plugins: &'a Path,
    /// The host's root folder.
    pub host_root: &'a Path,
    /// Whether files need no pin.
    pub allow_unpinned: bool,
}

/// Puts the version of a plugin back into its file that served before the one that the file has now: where this one
/// does not load, the one that serves in its place, else the one before. A supervisor that runs takes it up at once.
/// Doing it twice leads to the version of today.
///
/// # Errors
/// [`RollbackError`] where no version is kept to go back to, the policy does not let it be loaded, or the file cannot
/// be written.
pub fn rollback(plugin: &str, device: RollbackFolders<'_>) -> Result<Rollback, RollbackError> {
    go_back(plugin, device).map_err(|reason| RollbackError {
        plugin: plugin.to_owned(),
        reason,
    })
}

/// A version that is kept.
struct Candidate {
    component: PathBuf,
    digest: String,
    wasm: Vec<u8>,
    manifest: Manifest,
}

fn go_back(plugin: &str, device: RollbackFolders<'_>) -> Result<Rollback, String> {
    let kept = KeptVersions::open(device.state_dir);
    let (file, latest) = kept
        .files()
        .into_iter()
        .find_map(|file| {
            let latest = candidate(&kept, kept.of(&file)?.latest).ok()?;
            (latest.manifest.name == plugin).then_some((file, latest))
        })
        .ok_or_else(|| {
            "no version of it is kept: those that have served from files of the plugin folders are, but for what the device ships with"
                .to_owned()
        })?;
    let (_, present) = bytes(&file)?;
    let present_manifest = Manifest::of(&present).ok();
    let to = if compiled_code::digest(&present) == latest.digest {
        let before = kept.of(&file).and_then(|versions| versions.before);
        let before = before.ok_or_else(|| {
            format!(
                "{} is the first version of it that has served from `{}`",
                latest.manifest.version,
                file.display()
            )
        })?;
        candidate(&kept, before)?
    } else {
        latest
    };
    let from = present_manifest.map(|manifest| manifest.version);
    may_be_loaded(&to, from.as_ref(), device)?;
    put(&to, &file).map_err(|error| format!("`{}` cannot be written: {error}", file.display()))?;
    Ok(Rollback {
        file,
        to: to.manifest.version,
        from,
    })
}

fn candidate(kept: &KeptVersions, digest: String) -> Result<Candidate, String> {
    let component = kept.component(&digest);
    let (_, wasm) = bytes(&component)?;
    if compiled_code::digest(&wasm) != digest {
        return Err(format!("`{}` is damaged", component.display()));
    }
    let manifest = Manifest::of(&wasm).map_err(|error| chain(&error))?;
    Ok(Candidate {
        component,
        digest,
        wasm,
        manifest,
    })
}

/// Whether the policy lets a version be loaded in the place of `from`.
fn may_be_loaded(
    to: &Candidate,
    from: Option<&Version>,
    device: RollbackFolders<'_>,
) -> Result<(), String> {
    let files = PolicyFiles {
        owner: device.policy.to_owned(),
        stock: device.stock_plugins.to_owned(),
    };
    let policy = Policy::read(&files, device.allow_unpinned).map_err(|error| chain(&error))?;
    let keys: Vec<_> = policy.keys().public_keys().cloned().collect();
    let file = PluginFile {
        manifest: &to.manifest,
        digest: &to.digest,
        signatures: &Signatures::of(&to.component, &to.wasm, &keys),
    };
    let device = DeviceRules {
        host_root: device.host_root,
        allow_unpinned: device.allow_unpinned,
    };
    policy.admit(file, device, from).map(|_| ())
}

/// Writes a version into the plugin's file, with its signature beside it. The signature comes first, so that the file is
/// signed as soon as it is there.
fn put(version: &Candidate, file: &Path) -> std::io::Result<()> {
    let beside = signature::file_beside(file);
    match signature::read(&signature::file_beside(&version.component))? {
        Some(signature) => fs::write(&beside, signature)?,
        None if beside.exists() => fs::remove_file(&beside)?,
        None => {}
    }
    replace(file, &version.wasm)
}
