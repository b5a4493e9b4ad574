//! Versions of plugins that were in use, kept in the supervisor's own folder: for each file in the plugin folders, the
//! latest version and the previous one.
//!
//! If a file cannot be loaded any more, the version that served from it before stays in use, also after a restart; and
//! [`rollback`](crate::rollback) can restore a version. The policy applies to the kept files as to any others. Stock
//! plugins are not kept, since their files are replaced together with the supervisor.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::error_chain;
use parking_lot::Mutex;
use secure_fs::{Access, DirError, SecureDir};
use serde::{Deserialize, Serialize};
use tokio_util::task::TaskTracker;

use crate::settled_file::bytes;

/// The folder in the supervisor's state folder.
const FOLDER: &str = "plugin-versions";
/// The list of the versions, in that folder.
const INDEX: &str = "index.json";
/// The longest list, in bytes: [`crate::bounds::MOST_FILES`] with the longest paths that Linux has.
const INDEX_SIZE: u64 = 4 << 20;
/// The most bytes of all kept components together.
const TOTAL: u64 = 256 << 20;

/// The versions of one file that are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Versions {
    /// The digest of the version that served most recently.
    pub(crate) latest: String,
    /// The digest of the version that served before that.
    pub(crate) before: Option<String>,
}

/// By the file in a plugin folder.
type Index = BTreeMap<PathBuf, Versions>;

/// The kept versions, and how they are changed: anyone may read, but only one blocking thread at a time may write.
pub(crate) struct KeptVersions {
    folder: Arc<KeptFolder>,
    /// The digest that [`KeptVersions::keep`] was last called for, by file.
    requested: BTreeMap<PathBuf, String>,
    writes: TaskTracker,
}

struct KeptFolder {
    path: PathBuf,
    index: Mutex<Index>,
    /// Held while files are written.
    writing: Mutex<()>,
}

/// Why a version is not kept.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error("{0}")]
    Source(String),
    #[error(transparent)]
    Folder(#[from] DirError),
    #[error("`{path}` cannot be written")]
    Write { path: PathBuf, source: io::Error },
    #[error("all versions that are kept would have more than {} MiB", TOTAL >> 20)]
    TooMuch,
}

impl KeptVersions {
    /// Opens the versions in `state_dir`; there are none if the list is missing or damaged, which is logged.
    pub(crate) fn open(state_dir: &Path) -> KeptVersions {
        let path = state_dir.join(FOLDER);
        let index = read_index(&path).unwrap_or_else(|reason| {
            let index = path.join(INDEX);
            tracing::error!(
                path = %index.display(),
                "plugins cannot go back to earlier versions: `{}` {reason}",
                index.display()
            );
            Index::new()
        });
        KeptVersions {
            folder: Arc::new(KeptFolder {
                path,
                index: Mutex::new(index),
                writing: Mutex::default(),
            }),
            requested: BTreeMap::new(),
            writes: TaskTracker::new(),
        }
    }

    /// Returns the writes in the background, which whoever removes the state folder must wait for.
    pub(crate) fn writes(&self) -> TaskTracker {
        self.writes.clone()
    }

    /// Returns the versions of `file`.
    pub(crate) fn versions(&self, file: &Path) -> Option<Versions> {
        self.folder.index.lock().get(file).cloned()
    }

    /// Returns the files that have kept versions.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.folder.index.lock().keys().cloned().collect()
    }

    /// Returns where the component with this digest is kept.
    pub(crate) fn component(&self, digest: &str) -> PathBuf {
        self.folder.path.join(component_name(digest))
    }

    /// Keeps the content of `file`, which has this digest and serves, with the signature file that it was checked
    /// against: the present signature file may belong to the next version. Must be called in a tokio runtime, and does
    /// not wait.
    pub(crate) fn keep(&mut self, file: &Path, digest: &str, signature: Option<Arc<[u8]>>) {
        // What is kept may be out of date as long as a write is in progress, so the last request counts.
        let is_kept = match self.requested.get(file) {
            Some(requested) => requested == digest,
            None => self.versions(file).is_some_and(|of| of.latest == digest),
        };
        if is_kept {
            return;
        }
        self.requested.insert(file.to_owned(), digest.to_owned());
        let (folder, file, digest) = (Arc::clone(&self.folder), file.to_owned(), digest.to_owned());
        self.writes.spawn_blocking(move || {
            if let Err(error) = folder.keep(&file, &digest, signature.as_deref()) {
                let file = file.display();
                tracing::warn!(
                    %file,
                    "failed to keep a copy of the present version of `{file}`; it cannot be restored later: {}",
                    error_chain(&error)
                );
            }
        });
    }

    /// Forgets the versions of removed files: they must not come back by themselves. A missing file that `is_replaced`
    /// does not count as removed. Must be called in a tokio runtime, and does not wait.
    pub(crate) fn forget_removed(&mut self, is_replaced: impl Fn(&Path) -> bool) {
        let is_removed = |file: &Path| {
            let is_there = file.try_exists().unwrap_or(true);
            // A missing folder may be on a disk that appears later.
            !is_there && file.parent().is_some_and(Path::is_dir)
        };
        let files = self.files().into_iter();
        let removed: Vec<_> = files
            .filter(|file| is_removed(file) && !is_replaced(file))
            .collect();
        if removed.is_empty() {
            return;
        }
        let folder = Arc::clone(&self.folder);
        for file in &removed {
            self.requested.remove(file);
            folder.index.lock().remove(file);
        }
        self.writes.spawn_blocking(move || {
            let _writing = folder.writing.lock();
            let index = folder.index.lock().clone();
            if let Err(error) = folder.open().and_then(|dir| folder.write(&dir, &index)) {
                tracing::warn!(
                    "failed to remove the kept versions of removed plugins: {}",
                    error_chain(&error)
                );
            }
        });
    }
}

impl KeptFolder {
    fn open(&self) -> Result<SecureDir, KeepError> {
        Ok(SecureDir::open(&self.path, Access::Private)?)
    }

    fn keep(&self, file: &Path, digest: &str, signature: Option<&[u8]>) -> Result<(), KeepError> {
        let _writing = self.writing.lock();
        let (_, wasm) = bytes(file).map_err(KeepError::Source)?;
        if compiled_code::digest(&wasm) != digest {
            // It was replaced in the meantime; its new version is kept once that one serves.
            return Ok(());
        }
        let mut index = self.index.lock().clone();
        let before = match index.get(file) {
            // A newer version was requested in the meantime, but could not be kept.
            Some(kept) if kept.latest == digest => kept.before.clone(),
            kept => kept.map(|kept| kept.latest.clone()),
        };
        let versions = Versions {
            latest: digest.to_owned(),
            before,
        };
        index.insert(file.to_owned(), versions);
        let dir = self.open()?;
        let kept = index.values().flat_map(Versions::digests);
        let others: BTreeSet<_> = kept.filter(|kept| *kept != digest).collect();
        let size = |digest: &&str| {
            let component = self.path.join(component_name(digest));
            component.metadata().map_or(0, |component| component.len())
        };
        if others.iter().map(size).sum::<u64>() + wasm.len() as u64 > TOTAL {
            return Err(KeepError::TooMuch);
        }
        let name = component_name(digest);
        let failed = |source| KeepError::Write {
            path: self.path.join(&name),
            source,
        };
        dir.replace(&name, &wasm).map_err(failed)?;
        let beside = signature_name(digest);
        match signature {
            Some(signature) => dir.replace(&beside, signature),
            None => dir.remove(&beside),
        }
        .map_err(failed)?;
        self.write(&dir, &index)?;
        *self.index.lock() = index;
        Ok(())
    }

    /// Writes the list, and removes files that are not in it.
    fn write(&self, dir: &SecureDir, index: &Index) -> Result<(), KeepError> {
        let failed = |source| KeepError::Write {
            path: self.path.join(INDEX),
            source,
        };
        let text = serde_json::to_vec(index).map_err(|error| failed(error.into()))?;
        dir.replace(INDEX, &text).map_err(failed)?;
        let mut in_use = BTreeSet::from([INDEX.to_owned()]);
        for digest in index.values().flat_map(Versions::digests) {
            in_use.extend([component_name(digest), signature_name(digest)]);
        }
        for (name, _) in secure_fs::read_dir_names(dir).map_err(failed)? {
            if !in_use.contains(&name) {
                dir.remove(&name).map_err(failed)?;
            }
        }
        Ok(())
    }
}

impl Versions {
    fn digests(&self) -> impl Iterator<Item = &str> {
        [Some(&self.latest), self.before.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
    }
}

fn component_name(digest: &str) -> String {
    format!("{digest}.wasm")
}

/// Matches [`crate::signature::file_beside`].
fn signature_name(digest: &str) -> String {
    format!("{digest}.wasm.minisig")
}

/// Reads the list in the folder at `path`; returns an empty one if there is none.
fn read_index(path: &Path) -> Result<Index, String> {
    let unreadable = |error: &dyn std::error::Error| format!("cannot be read: {error}");
    let dir = SecureDir::existing(path, Access::Private).map_err(|error| unreadable(&error))?;
    let Some(dir) = dir else {
        return Ok(Index::new());
    };
    let text = dir
        .read(INDEX, INDEX_SIZE)
        .map_err(|error| unreadable(&error))?;
    let Some(text) = text else {
        return Ok(Index::new());
    };
    let index: Index =
        serde_json::from_slice(&text).map_err(|error| format!("is damaged: {error}"))?;
    // They become part of paths.
    let is_digest = |digest: &str| digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    if index.values().flat_map(Versions::digests).all(is_digest) {
        Ok(index)
    } else {
        Err("is damaged: it contains an invalid digest".to_owned())
    }
}

#[cfg(test)]
mod tests;
