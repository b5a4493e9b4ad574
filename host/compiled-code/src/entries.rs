//! The folder of compiled files: who may write to it, how a file is added, and which files are removed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use secure_fs::LocationError;
use tokio::io::AsyncWriteExt as _;

use crate::code_key::{CodeKey, KeyedDigest};
use crate::{CheckError, CompileError};

/// The end of a finished file's name.
const SUFFIX: &str = ".cwasm";
/// The beginning of an unfinished file's name. If a kill leaves one behind, the next start removes it.
const UNFINISHED: &str = "unfinished-";
/// How many unfinished files this process has created, so that no two have the same name.
static MADE: AtomicU64 = AtomicU64::new(0);

/// How much of a file is in memory at a time while it is digested, in bytes.
const PIECE: usize = 64 << 10;

/// Prepares `folder` for native code: it exists, is only ours, has parents in which nobody else can replace it, and
/// contains no unfinished files.
pub(crate) fn open_folder(folder: &Path) -> Result<(), CompileError> {
    let failed = |source| CompileError::folder(folder, source);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(failed)?;
    // Not `metadata`: a link that someone else put there could point to a folder of theirs.
    let meta = fs::symlink_metadata(folder).map_err(failed)?;
    if !meta.is_dir() {
        return Err(failed(io::Error::from(io::ErrorKind::NotADirectory)));
    }
    let we = rustix::process::geteuid().as_raw();
    if meta.uid() != we {
        return Err(CompileError::Owner {
            path: folder.to_owned(),
            owner: meta.uid(),
            we,
        });
    }
    check_parents(folder)?;
    if meta.mode() & 0o777 != 0o700 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    for entry in fs::read_dir(folder).map_err(failed)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            remove_if_left(&entry.path());
        }
    }
    Ok(())
}

/// Removes an unfinished file that no process is writing: a writer holds the file's lock, which ends with its process.
fn remove_if_left(path: &Path) {
    if let Ok(file) = File::open(path)
        && file.try_lock().is_ok()
    {
        let _ = fs::remove_file(path);
    }
}

/// Checks that nobody else can replace a folder or a link on the path to `folder`, and so its contents.
fn check_parents(folder: &Path) -> Result<(), CompileError> {
    secure_fs::check_location(folder).map_err(|error| match error {
        LocationError::Inspect { source, .. } => CompileError::folder(folder, source),
        LocationError::Replaceable {
            place, owner, mode, ..
        } => CompileError::Parent {
            folder: folder.to_owned(),
            parent: place,
            owner,
            mode,
        },
    })
}

/// Returns the beginning of the names of a component's compiled files: everything that determines their contents.
pub(crate) fn stem(digest: &str, profile: &str, settings: &str) -> String {
    format!("{digest}-{profile}-{settings}")
}

/// Returns the compiled files whose names begin with `stem`: one, unless the disk is damaged.
pub(crate) fn find(folder: &Path, stem: &str) -> Vec<PathBuf> {
    let listing = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = listing.filter_map(|entry| entry.file_name().into_string().ok());
    let ours = names.filter(|name| {
        let rest = name.strip_suffix(SUFFIX);
        let rest = rest.and_then(|name| name.strip_prefix(stem));
        rest.is_some_and(|rest| rest.starts_with('-'))
    });
    ours.map(|name| folder.join(name)).collect()
}

/// Checks the file at `path`, in the folder of a [`Cache`](crate::Cache), against the keyed digest in its name.
///
/// # Errors
/// If no cache of this device wrote this content under this name, or this cannot be determined.
pub fn check(path: &Path) -> Result<(), CheckError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let key = CodeKey::read(folder).map_err(|source| CheckError::Key {
        folder: folder.to_owned(),
        source,
    })?;
    match is_sound(&key, path) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CheckError::Unsound {
            path: path.to_owned(),
        }),
        Err(source) => Err(CheckError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Returns whether a cache with this key wrote the file at `path` under this name. Reads the whole file.
pub(crate) fn is_sound(key: &CodeKey, path: &Path) -> io::Result<bool> {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let Some((stem, tag)) = name
        .strip_suffix(SUFFIX)
        .and_then(|name| name.rsplit_once('-'))
    else {
        return Ok(false);
    };
    let mut file = File::open(path)?;
    let mut digest = key.digest(stem);
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(digest.is(tag)),
            length => digest.update(piece.get(..length).unwrap_or_default()),
        }
    }
}

/// A compiled file that is being written. It is removed when this is dropped, unless it was finished.
pub(crate) struct UnfinishedFile {
    path: PathBuf,
    stem: String,
    file: tokio::fs::File,
    digest: KeyedDigest,
    /// Its length so far, in bytes: also for those who watch whether it grows.
    size: Arc<AtomicU64>,
}

impl UnfinishedFile {
    /// Creates an empty file in `folder` for the compilation under `stem`.
    pub(crate) fn create(
        folder: &Path,
        key: &CodeKey,
        stem: &str,
    ) -> Result<UnfinishedFile, CompileError> {
        loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let name = format!("{UNFINISHED}{}-{number}", std::process::id());
            let path = folder.join(name);
            match create_locked(&path) {
                Ok(Some(file)) => {
                    return Ok(UnfinishedFile {
                        path,
                        stem: stem.to_owned(),
                        file: file.into(),
                        digest: key.digest(stem),
                        size: Arc::default(),
                    });
                }
                // A process that cleans the folder locked it first, or a file with this name was left over.
                Ok(None) => {}
                Err(error) => return Err(CompileError::folder(&path, error)),
            }
        }
    }

    /// Appends to the file.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), CompileError> {
        self.digest.update(bytes);
        let written = self.file.write_all(bytes).await;
        written.map_err(|error| CompileError::folder(&self.path, error))?;
        self.size.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Returns its length so far, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Returns the counter of its bytes, which can be read while somebody else writes.
    pub(crate) fn size_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.size)
    }

    /// Gives the file its final name, completely or not at all, even after a power cut. The name's last part is a keyed
    /// digest of the bytes and of the rest of the name, so a file that was damaged, got the name of another component's
    /// file, or was never written here, is not run.
    pub(crate) async fn finish(mut self) -> Result<PathBuf, CompileError> {
        let tag = self.digest.clone().in_words();
        let target = self
            .path
            .with_file_name(format!("{}-{tag}{SUFFIX}", self.stem));
        let written = async {
            self.file.flush().await?;
            self.file.sync_all().await?;
            tokio::fs::rename(&self.path, &target).await?;
            let folder = target.parent().unwrap_or(Path::new("/"));
            tokio::fs::File::open(folder).await?.sync_all().await
        };
        match written.await {
            Ok(()) => Ok(target),
            Err(error) => Err(CompileError::folder(&target, error)),
        }
    }
}

/// Creates a file that nobody mistakes for a leftover; `None` if another name must be tried.
fn create_locked(path: &Path) -> io::Result<Option<File>> {
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let file = match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        created => created?,
    };
    file.lock()?;
    let is_there = file.metadata()?.nlink() > 0;
    Ok(is_there.then_some(file))
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        // A finished file has another name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Records that `path` was used now. A failure does not matter: the file only seems older than it is.
pub(crate) fn touch(path: &Path) {
    if let Ok(file) = File::open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Removes the files of `profile` that were compiled with settings other than `settings`. Then removes the least
/// recently used of those that are not in use, until they have at most `limit` bytes; never `latest`.
pub(crate) fn clean(
    folder: &Path,
    (profile, settings): (&str, &str),
    limit: u64,
    latest: &Path,
    in_use: &HashSet<PathBuf>,
) {
    let Ok(listing) = fs::read_dir(folder) else {
        return;
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in listing.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Some(stem) = name.strip_suffix(SUFFIX) else {
            continue;
        };
        let mut parts = stem.split('-').skip(1);
        let (of_profile, of_settings, tag) = (parts.next(), parts.next(), parts.next());
        // Without its last part it is from an earlier version, and is not found any more.
        if of_profile == Some(profile) && (of_settings != Some(settings) || tag.is_none()) {
            let _ = fs::remove_file(entry.path());
            continue;
        }
        if in_use.contains(&entry.path()) {
            continue;
        }
        if let Ok(meta) = entry.metadata() {
            let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push((used, meta.len(), entry.path()));
        }
    }
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    files.sort();
    for (_, size, path) in files {
        if total <= limit {
            break;
        }
        if path != latest && fs::remove_file(&path).is_ok() {
            total -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_progress_stay_and_files_that_a_kill_left_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(format!("{UNFINISHED}7-0"));
        fs::write(&left, "half").unwrap();
        let key = CodeKey::open(folder.path()).unwrap();
        let one = UnfinishedFile::create(folder.path(), &key, "a").unwrap();
        let other = UnfinishedFile::create(folder.path(), &key, "a").unwrap();
        assert_ne!(one.path, other.path);
        open_folder(folder.path()).unwrap();
        assert!(one.path.exists() && other.path.exists() && !left.exists());
        let path = one.path.clone();
        drop(one);
        assert!(!path.exists());
    }
}
