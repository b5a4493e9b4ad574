//! Reading a plugin's file only once it is whole.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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

/// Reads a file once nobody changes it any more (`settle`), with the stamp that it then has.
pub(crate) async fn read(file: PathBuf, settle: bool) -> Result<(Stamp, Vec<u8>), String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    for _ in 0..LOOKS {
        let path = file.clone();
        let read = tokio::task::spawn_blocking(move || {
            let stamp = Stamp::of(&path)?;
            if stamp.size > SIZE {
                return Ok((stamp, Vec::new()));
            }
            Ok((stamp, fs::read(&path)?))
        });
        let (stamp, wasm) = read
            .await
            .unwrap_or_else(|_| Err(std::io::Error::other("cut short")))
            .map_err(failed)?;
        if stamp.size > SIZE {
            return Err(format!("it has {} bytes, more than {SIZE}", stamp.size));
        }
        if settle {
            tokio::time::sleep(SETTLED).await;
        }
        if Stamp::of(&file).is_ok_and(|now| now == stamp) && stamp.size == wasm.len() as u64 {
            return Ok((stamp, wasm));
        }
    }
    Err("it changes all the time".to_owned())
}
