//! The layout of the engine's folder, and how folders are created and removed atomically.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use model::{ContainerId, ImageRef};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use wasm_service::record;

use crate::EngineError;

/// The prefix of the name of a folder that is being created.
const UNFINISHED: &str = ".new-";
/// The prefix of the name of a folder that is being removed.
const GONE: &str = ".gone-";
/// The supervisor's own folder: other users can open entries in it only if they know their names.
const SEARCHABLE: u32 = 0o711;
/// The longest name of a volume or network, which is also its folder's name.
const MAX_NAME: usize = 200;

/// The engine's folders.
pub(super) struct Folders {
    /// The engine's own folder, with links resolved.
    pub(super) root: PathBuf,
    pub(super) images: PathBuf,
    pub(super) components: PathBuf,
    pub(super) containers: PathBuf,
    pub(super) networks: PathBuf,
    pub(super) volumes: PathBuf,
}

impl Folders {
    /// Creates missing folders, and removes what a kill left unfinished.
    pub(super) fn open(root: &Path) -> Result<Self, EngineError> {
        let open = || -> io::Result<Self> {
            // Services' processes receive paths, and run with another working directory.
            make(root)?;
            let root = root.canonicalize()?;
            let folders = Folders {
                images: root.join("images"),
                components: root.join("components"),
                containers: root.join("containers"),
                networks: root.join("networks"),
                volumes: root.join("volumes"),
                root,
            };
            for folder in [&folders.root, &folders.containers, &folders.networks] {
                make(folder)?;
                open_to_services(folder)?;
            }
            for network in names(&folders.networks) {
                // An earlier version created it for the supervisor only.
                open_to_services(&folders.networks.join(network))?;
            }
            for folder in [
                &folders.images,
                &folders.components,
                &folders.containers,
                &folders.networks,
                &folders.volumes,
            ] {
                make(folder)?;
                clear_leftovers(folder)?;
            }
            Ok(folders)
        };
        open().map_err(|error| {
            EngineError::failed(
                format!("open the wasm engine's folder `{}`", root.display()),
                error,
            )
        })
    }

    pub(super) fn container(&self, id: &ContainerId) -> PathBuf {
        self.containers.join(id.as_str())
    }

    pub(super) fn component(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
        self.components.join(format!("{hex}.wasm"))
    }

    pub(super) fn image(&self, reference: &ImageRef) -> PathBuf {
        let name = hex::encode(Sha256::digest(reference.as_str()));
        self.images.join(format!("{name}.json"))
    }
}

/// Checks that a name is fit for a folder.
///
/// # Errors
/// [`EngineError::Invalid`] if it is not.
pub(super) fn fit_name<'a>(what: &str, name: &'a str) -> Result<&'a str, EngineError> {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let fits = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if begins_well && fits && name.len() <= MAX_NAME {
        return Ok(name);
    }
    Err(EngineError::Invalid(format!(
        "`{name}` cannot be the {what}'s name: letters, digits, `_`, `.` and `-`, beginning with a \
         letter or digit, at most {MAX_NAME}"
    )))
}

/// Creates the error for a name that something else has.
pub(super) fn name_taken(what: &str, name: &str) -> EngineError {
    EngineError::Conflict {
        what: format!("the {what} `{name}`"),
        hint: "remove it, or choose another name".into(),
    }
}

/// Creates the folder `path` with the contents that `fill` writes: completely or not at all.
pub(super) fn put(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let unfinished = beside(path, UNFINISHED)?;
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    make(&unfinished)?;
    fill(&unfinished)
        .and_then(|()| fs::rename(&unfinished, path))
        .and_then(|()| sync_parent(path))
        .inspect_err(|_| {
            let _ = fs::remove_dir_all(&unfinished);
        })
}

/// Removes the folder `path`; a missing one is not an error. It is gone as soon as the removal
/// begins: what is left after a kill is not found again.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let aside = beside(path, GONE)?;
    match fs::rename(path, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => fs::remove_dir_all(aside),
    }
}

pub(super) fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Lets services' processes, which are other users, access what they may read in it; their working directory is the
/// engine's folder. A disk that has become read-only does not keep the supervisor from starting: the error is reported
/// when a service starts.
pub(super) fn open_to_services(folder: &Path) -> io::Result<()> {
    if fs::metadata(folder)?.permissions().mode() & 0o7777 == SEARCHABLE {
        return Ok(());
    }
    match fs::set_permissions(folder, Permissions::from_mode(SEARCHABLE)) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            tracing::warn!(
                %error,
                path = %folder.display(),
                "failed to give services access to `{}`",
                folder.display()
            );
            Ok(())
        }
        outcome => outcome,
    }
}

/// Reads a record of ours; a damaged one is logged, and treated as missing.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    record::read(path).unwrap_or_else(|error| {
        tracing::warn!(
            %error,
            path = %path.display(),
            "skipping the damaged record `{}`",
            path.display()
        );
        None
    })
}

/// Returns the names of the complete entries in `folder`: nothing that is being created or removed.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            tracing::warn!(
                %error,
                path = %folder.display(),
                "failed to list `{}`",
                folder.display()
            );
            return Vec::new();
        }
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

fn clear_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let removed = if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        };
        if let Err(error) = removed {
            tracing::warn!(
                %error,
                path = %entry.path().display(),
                "failed to remove `{}`",
                entry.path().display()
            );
        }
    }
    Ok(())
}

fn beside(path: &Path, prefix: &str) -> io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            Ok(parent.join(format!("{prefix}{}", name.to_string_lossy())))
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => fs::File::open(parent)?.sync_data(),
        None => Ok(()),
    }
}
