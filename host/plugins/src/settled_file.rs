//! Reading a plugin's file only once it is whole.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use semver::Version;
use signatures::PublicKey;

use crate::PluginData;
use crate::failure::chain;
use crate::manifest::Manifest;
use crate::newest;
use crate::owners;
use crate::signature::{self, Signatures};

/// The largest plugin, in bytes.
const SIZE: u64 = 64 << 20;
/// For how long a file has to stay as it is before it is taken for a whole one.
const SETTLED: Duration = Duration::from_millis(50);
/// How often it is looked at until then.
const LOOKS: u32 = 100;

/// The files of plugins in `folders`, each with why nothing may be loaded from it: who can write the file, or its
/// folder. A folder that is not there has none.
pub(crate) fn plugin_files(folders: &[PathBuf]) -> Vec<(PathBuf, Option<String>)> {
    let is_plugin = |path: &PathBuf| {
        let is_wasm = path
            .extension()
            .is_some_and(|extension| extension == "wasm");
        let name = path.file_name().unwrap_or_default();
        is_wasm && !name.as_encoded_bytes().starts_with(b".")
    };
    let mut files = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let plugins = entries.map(|entry| entry.path()).filter(is_plugin);
        let checked = owners::check(folder);
        files.extend(plugins.map(|file| {
            let place = match &checked {
                Ok(()) => owners::check(&file).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            (file, place.err())
        }));
    }
    files
}

/// Tells whether a file may have changed, or the signature beside it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: FileStamp,
    /// None where there is no signature.
    signature: Option<FileStamp>,
}

/// Tells whether one file may have changed.
#[derive(Clone, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    size: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(crate) fn of(file: &Path) -> std::io::Result<Stamp> {
        Ok(Stamp {
            file: FileStamp::of(file)?,
            signature: FileStamp::of(&signature::file_beside(file)).ok(),
        })
    }

    /// The file's size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.file.size
    }

    /// A word that changes when somebody touches the file, to have it tried again.
    pub(crate) fn edition(&self) -> String {
        format!("{:?}", self.file.modified)
    }
}

impl FileStamp {
    fn of(file: &Path) -> std::io::Result<FileStamp> {
        let meta = fs::metadata(file)?;
        Ok(FileStamp {
            inode: meta.ino(),
            size: meta.len(),
            modified: meta.modified().ok(),
        })
    }
}

/// What a file says of itself, and the digest that it is known by.
#[derive(Clone)]
pub(crate) struct FileHead {
    pub(crate) digest: String,
    pub(crate) manifest: Result<Manifest, String>,
    pub(crate) signatures: Signatures,
    /// The newest version of the plugin that was loaded for a signature, as far as this file is signed.
    pub(crate) newest: Option<Version>,
    /// The keys that its signatures were checked against.
    pub(crate) keys: Arc<[PublicKey]>,
}

/// Reads what a file says of itself once nobody changes it any more (`settle`).
/// Its signatures are checked against `keys`.
pub(crate) async fn read_head(
    file: PathBuf,
    keys: Arc<[PublicKey]>,
    data: Arc<dyn PluginData>,
    settle: bool,
) -> Result<(Stamp, FileHead), String> {
    for _ in 0..LOOKS {
        let (path, keys, data) = (file.clone(), Arc::clone(&keys), Arc::clone(&data));
        let read = tokio::task::spawn_blocking(move || head(&path, keys, &*data)).await;
        let (stamp, size, head) = read.unwrap_or_else(|_| Err(cut_short()))?;
        if settle {
            tokio::time::sleep(SETTLED).await;
        }
        let unchanged = Stamp::of(&file).is_ok_and(|now| now == stamp);
        if unchanged && stamp.file.size == size {
            return Ok((stamp, head));
        }
    }
    Err("it changes all the time".to_owned())
}

/// Reads the file whose head was read before.
///
/// # Errors
/// When it cannot be read, or has changed since.
pub(crate) async fn read_wasm(file: PathBuf, digest: String) -> Result<Vec<u8>, String> {
    let read = tokio::task::spawn_blocking(move || {
        let wasm = bytes(&file)?.1;
        if sandbox::digest(&wasm) == digest {
            Ok(wasm)
        } else {
            Err("it has changed while it was loaded".to_owned())
        }
    });
    read.await.unwrap_or_else(|_| Err(cut_short()))
}

fn cut_short() -> String {
    "reading it was cut short".to_owned()
}

fn head(
    path: &Path,
    keys: Arc<[PublicKey]>,
    data: &dyn PluginData,
) -> Result<(Stamp, u64, FileHead), String> {
    let (stamp, wasm) = bytes(path)?;
    let manifest = Manifest::of(&wasm).map_err(|error| chain(&error));
    let signatures = Signatures::of(path, &wasm, &keys);
    let newest = match &manifest {
        Ok(manifest) if !signatures.keys.is_empty() => newest::kept(data, &manifest.name)?,
        _ => None,
    };
    let head = FileHead {
        digest: sandbox::digest(&wasm),
        manifest,
        signatures,
        newest,
        keys,
    };
    Ok((stamp, wasm.len() as u64, head))
}

/// The whole file, with what tells whether it has changed since.
pub(crate) fn bytes(path: &Path) -> Result<(Stamp, Vec<u8>), String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    // Reading a pipe could take for ever.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err("it is no file".to_owned());
    }
    let stamp = Stamp::of(path).map_err(failed)?;
    let size = stamp.file.size;
    if size > SIZE {
        return Err(format!("it has {size} bytes, more than {SIZE}"));
    }
    Ok((stamp, fs::read(path).map_err(failed)?))
}
