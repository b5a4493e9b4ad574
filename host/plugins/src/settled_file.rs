//! Reading a plugin's file only once it is complete.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use compiled_code::{CodeDigest, Digests};
use model::error_chain;
use semver::Version;
use signatures::PublicKey;
use tokio::sync::Semaphore;

use crate::bounds::MOST_FILES;
use crate::config::PluginData;
use crate::newest;
use crate::owners;
use crate::pending_writes::PendingWrites;
use crate::signature::{self, Signatures};
use plugin_manifest::{COMPONENT, Manifest};

/// The largest plugin, in bytes.
pub(crate) const SIZE: u64 = 64 << 20;
/// How long a file has to stay unchanged to count as complete.
const SETTLED: Duration = Duration::from_millis(50);
/// How often it is checked until then.
const LOOKS: u32 = 100;

/// The folders whose files are plugins.
pub(crate) struct PluginFolders {
    pub(crate) paths: Vec<PathBuf>,
    /// Which of their files are being written.
    pub(crate) pending_writes: PendingWrites,
}

/// The plugin files to be read.
pub(crate) struct PluginFiles {
    /// Each file, with the reason why nothing may be loaded from it: who can write the file, or its folder.
    pub(crate) files: Vec<(PathBuf, Option<String>)>,
    /// The number of files beyond [`MOST_FILES`].
    pub(crate) left_out: usize,
}

/// Lists the plugin files in `folders`. A missing folder has none. If there are too many, files that `are_known` or
/// begin like a component take precedence.
pub(crate) fn plugin_files(folders: &[PathBuf], are_known: impl Fn(&Path) -> bool) -> PluginFiles {
    let is_plugin = |path: &PathBuf| {
        let is_wasm = path
            .extension()
            .is_some_and(|extension| extension == "wasm");
        let name = path.file_name().unwrap_or_default();
        is_wasm && !name.as_encoded_bytes().starts_with(b".")
    };
    let mut files = Vec::new();
    for (number, folder) in folders.iter().enumerate() {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let plugins = entries.map(|entry| entry.path()).filter(is_plugin);
        files.extend(plugins.map(|file| (number, file)));
    }
    let left_out = files.len().saturating_sub(MOST_FILES);
    if left_out > 0 {
        files.sort_by_cached_key(|(number, file)| {
            let goes_before = are_known(file) || begins_as_component(file).unwrap_or(false);
            (!goes_before, *number, file.clone())
        });
        files.truncate(MOST_FILES);
    }
    let checked: Vec<_> = folders.iter().map(|folder| owners::check(folder)).collect();
    let files = files.into_iter().map(|(number, file)| {
        let place = match checked.get(number) {
            Some(Err(error)) => Some(error.to_string()),
            _ => owners::check(&file).err().map(|error| error.to_string()),
        };
        (file, place)
    });
    PluginFiles {
        files: files.collect(),
        left_out,
    }
}

/// Returns whether a file begins like a component, as far as it has been written.
fn begins_as_component(path: &Path) -> std::io::Result<bool> {
    Ok(COMPONENT.starts_with(&beginning(path)?))
}

/// Returns the first bytes of a file, as many as the beginning of a component has, or fewer if the file is shorter.
fn beginning(path: &Path) -> std::io::Result<Vec<u8>> {
    secure_fs::read_beginning(path, COMPONENT.len() as u64)
}

/// Shows whether a file, or the signature next to it, may have changed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: FileStamp,
    /// `None` if there is no signature.
    signature: Option<FileStamp>,
}

/// Shows whether one file may have changed.
#[derive(Clone, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    size: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(crate) fn read(file: &Path) -> std::io::Result<Stamp> {
        Ok(Stamp {
            file: FileStamp::read(file)?,
            signature: FileStamp::read(&signature::file_beside(file)).ok(),
        })
    }

    /// Returns the file's size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.file.size
    }

    /// Returns a text that changes when the file is touched, which causes another attempt.
    pub(crate) fn edition(&self) -> String {
        format!("{:?}", self.file.modified)
    }
}

impl FileStamp {
    fn read(file: &Path) -> std::io::Result<FileStamp> {
        let meta = fs::metadata(file)?;
        Ok(FileStamp {
            inode: meta.ino(),
            size: meta.len(),
            modified: meta.modified().ok(),
        })
    }
}

/// A file's manifest and signatures, and the digests that identify it and its code.
#[derive(Clone)]
pub(crate) struct FileHead {
    pub(crate) digest: String,
    pub(crate) code: CodeDigest,
    pub(crate) manifest: Result<Manifest, String>,
    pub(crate) signatures: Signatures,
    /// The newest version of the plugin that was loaded because of a signature, if this file is signed.
    pub(crate) newest: Option<Version>,
    /// The keys that its signatures were checked against.
    pub(crate) keys: Arc<[PublicKey]>,
}

/// Reads a file's head once it has stopped changing (`settle`). Its signatures are checked against `keys`. A file is
/// only in memory while it holds one of the `turns`, and not while it waits.
pub(crate) async fn read_head(
    file: PathBuf,
    keys: Arc<[PublicKey]>,
    data: Arc<dyn PluginData>,
    turns: Arc<Semaphore>,
    settle: bool,
) -> Result<(Stamp, FileHead), String> {
    for _ in 0..LOOKS {
        let (path, keys, data) = (file.clone(), Arc::clone(&keys), Arc::clone(&data));
        let turn = Arc::clone(&turns).acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || head(&path, keys, &*data)).await;
        drop(turn);
        let (stamp, size, head) = read.unwrap_or_else(|_| Err(cut_short()))?;
        // A file that is not a component stays that way, even while it is being written; when it is closed, it is read
        // again.
        let Some(size) = size else {
            return Ok((stamp, head));
        };
        if settle {
            tokio::time::sleep(SETTLED).await;
        }
        let unchanged = Stamp::read(&file).is_ok_and(|now| now == stamp);
        if unchanged && stamp.file.size == size {
            return Ok((stamp, head));
        }
    }
    Err("it keeps changing".to_owned())
}

/// Reads the file whose head was read before.
///
/// # Errors
/// If it cannot be read, or has changed since.
pub(crate) async fn read_wasm(file: PathBuf, digest: String) -> Result<Vec<u8>, String> {
    let read = tokio::task::spawn_blocking(move || {
        let wasm = bytes(&file)?.1;
        if compiled_code::digest(&wasm) == digest {
            Ok(wasm)
        } else {
            Err("it changed while it was being loaded".to_owned())
        }
    });
    read.await.unwrap_or_else(|_| Err(cut_short()))
}

fn cut_short() -> String {
    "reading it was interrupted".to_owned()
}

/// Returns a file's head and its size: `None` if it does not begin like a component, so that no more was read.
fn head(
    path: &Path,
    keys: Arc<[PublicKey]>,
    data: &dyn PluginData,
) -> Result<(Stamp, Option<u64>, FileHead), String> {
    let stamp = Stamp::read(path).map_err(failed)?;
    let start = beginning(path).map_err(failed)?;
    if !COMPONENT.starts_with(&start)
        && let Err(error) = plugin_manifest::check_beginning(&start)
    {
        let head = FileHead {
            digest: String::new(),
            code: CodeDigest::new(&start),
            manifest: Err(error.to_string()),
            signatures: Signatures::default(),
            newest: None,
            keys,
        };
        return Ok((stamp, None, head));
    }
    let (stamp, wasm) = bytes(path)?;
    let manifest = Manifest::from_wasm(&wasm).map_err(|error| error_chain(&error));
    let signatures = Signatures::load(path, &wasm, &keys);
    let newest = match &manifest {
        Ok(manifest) if !signatures.keys.is_empty() => {
            newest::stored_version(data, &manifest.name)?
        }
        _ => None,
    };
    let digests = Digests::new(&wasm);
    let head = FileHead {
        digest: digests.file,
        code: digests.code,
        manifest,
        signatures,
        newest,
        keys,
    };
    Ok((stamp, Some(wasm.len() as u64), head))
}

/// Reads the whole file, with a stamp to check whether it has changed since.
pub(crate) fn bytes(path: &Path) -> Result<(Stamp, Vec<u8>), String> {
    let stamp = Stamp::read(path).map_err(failed)?;
    let too_large = |size| Err(format!("it has {size} bytes, more than {SIZE}"));
    if stamp.file.size > SIZE {
        return too_large(stamp.file.size);
    }
    // It may grow meanwhile, and the kernel's files have more bytes than they state.
    let wasm = secure_fs::read_beginning(path, SIZE + 1).map_err(failed)?;
    match wasm.len() as u64 {
        size if size > SIZE => too_large(size),
        _ => Ok((stamp, wasm)),
    }
}

fn failed(error: std::io::Error) -> String {
    format!("it cannot be read: {error}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_that_never_ends_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wasm");
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, 0o600.into()).unwrap();
        let refused = || {
            assert!(begins_as_component(&file).is_err());
            let reason = bytes(&file).map(|_| ()).unwrap_err();
            assert!(reason.starts_with("it cannot be read: "), "{reason}");
        };
        refused();
        // The last one looks like a plain file without content.
        for target in ["/dev/zero", "/proc/kmsg", "/proc/version"] {
            fs::remove_file(&file).unwrap();
            symlink(target, &file).unwrap();
            refused();
        }
    }

    #[test]
    fn no_more_is_read_than_a_plugin_may_have() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wasm");
        fs::File::create(&file).unwrap().set_len(SIZE + 1).unwrap();
        let reason = bytes(&file).map(|_| ()).unwrap_err();
        assert!(reason.contains("more than 67108864"), "{reason}");
    }
}
