//! Reading a plugin's file only once it is whole.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::failure::chain;
use crate::manifest::Manifest;

/// The largest plugin, in bytes.
const SIZE: u64 = 64 << 20;
/// For how long a file has to stay as it is before it is taken for a whole one.
const SETTLED: Duration = Duration::from_millis(50);
/// How often it is looked at until then.
const LOOKS: u32 = 100;

/// The files of plugins in `folders`. A folder that is not there has none.
pub(crate) fn plugin_files(folders: &[PathBuf]) -> Vec<PathBuf> {
    let is_plugin = |path: &PathBuf| {
        let is_wasm = path
            .extension()
            .is_some_and(|extension| extension == "wasm");
        let name = path.file_name().unwrap_or_default();
        is_wasm && !name.as_encoded_bytes().starts_with(b".")
    };
    let entries = folders.iter().flat_map(fs::read_dir).flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(is_plugin)
        .collect()
}

/// Tells whether a file may have changed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(crate) fn of(file: &Path) -> std::io::Result<Stamp> {
        let meta = fs::metadata(file)?;
        Ok(Stamp {
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
}

/// Reads what a file says of itself once nobody changes it any more (`settle`).
pub(crate) async fn read_head(file: PathBuf, settle: bool) -> Result<(Stamp, FileHead), String> {
    for _ in 0..LOOKS {
        let path = file.clone();
        let read = tokio::task::spawn_blocking(move || head(&path)).await;
        let (stamp, size, head) = read.unwrap_or_else(|_| Err(cut_short()))?;
        if settle {
            tokio::time::sleep(SETTLED).await;
        }
        let unchanged = Stamp::of(&file).is_ok_and(|now| now == stamp);
        if unchanged && stamp.size == size {
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

fn head(path: &Path) -> Result<(Stamp, u64, FileHead), String> {
    let (stamp, wasm) = bytes(path)?;
    let head = FileHead {
        digest: sandbox::digest(&wasm),
        manifest: Manifest::of(&wasm).map_err(|error| chain(&error)),
    };
    Ok((stamp, wasm.len() as u64, head))
}

/// The whole file, with what tells whether it has changed since.
pub(crate) fn bytes(path: &Path) -> Result<(Stamp, Vec<u8>), String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    let stamp = Stamp::of(path).map_err(failed)?;
    if stamp.size > SIZE {
        return Err(format!("it has {} bytes, more than {SIZE}", stamp.size));
    }
    Ok((stamp, fs::read(path).map_err(failed)?))
}
