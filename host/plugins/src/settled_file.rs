//! Reading a plugin's file only once it is whole.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::manifest::{Manifest, ManifestError};

/// The largest plugin, in bytes.
const SIZE: u64 = 64 << 20;
/// For how long a file has to stay as it is before it is taken for a whole one.
const SETTLED: Duration = Duration::from_millis(50);
/// How often it is looked at until then.
const LOOKS: u32 = 100;

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

/// A plugin's file, read.
pub(crate) struct PluginFile {
    pub(crate) stamp: Stamp,
    pub(crate) wasm: Vec<u8>,
    pub(crate) digest: String,
    pub(crate) manifest: Result<Manifest, ManifestError>,
}

/// Reads a file once nobody changes it any more (`settle`).
pub(crate) async fn read(file: PathBuf, settle: bool) -> Result<PluginFile, String> {
    for _ in 0..LOOKS {
        let path = file.clone();
        let read = tokio::task::spawn_blocking(move || PluginFile::read(&path)).await;
        let read = read.unwrap_or_else(|_| Err("reading it was cut short".to_owned()))?;
        if settle {
            tokio::time::sleep(SETTLED).await;
        }
        let unchanged = Stamp::of(&file).is_ok_and(|now| now == read.stamp);
        if unchanged && read.stamp.size == read.wasm.len() as u64 {
            return Ok(read);
        }
    }
    Err("it changes all the time".to_owned())
}

impl PluginFile {
    fn read(path: &Path) -> Result<PluginFile, String> {
        let failed = |error: std::io::Error| format!("it cannot be read: {error}");
        let stamp = Stamp::of(path).map_err(failed)?;
        if stamp.size > SIZE {
            return Err(format!("it has {} bytes, more than {SIZE}", stamp.size));
        }
        let wasm = fs::read(path).map_err(failed)?;
        let (digest, manifest) = (sandbox::digest(&wasm), Manifest::of(&wasm));
        Ok(PluginFile {
            stamp,
            wasm,
            digest,
            manifest,
        })
    }
}
