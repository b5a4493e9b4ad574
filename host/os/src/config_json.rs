//! The device's `config.json`: the identity and owner of the device. It is on the boot partition, where the host's own
//! programs and people read and write it too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

/// The largest file that is read or written, in bytes.
const LONGEST: usize = 1 << 20;

/// The device's `config.json`. Clones share one lock. Each call reads the file, since others write it too; each call
/// blocks for as long as a small file takes.
#[derive(Debug, Clone)]
pub struct ConfigJson {
    path: PathBuf,
    /// Allows one writer at a time.
    writing: Arc<Mutex<()>>,
}

/// Why the file was not read or not written. In both cases the file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ConfigJsonError {
    /// The file exists but cannot be opened or read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file does not hold exactly one JSON object.
    #[error("`{}` is not a usable JSON object; it is left as it is", path.display())]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// Where in the text the parser stopped, and why.
        source: serde_json::Error,
    },
    /// The file, or its new text, is over 1 MiB.
    #[error("`{}` would be, or is, larger than {LONGEST} bytes", path.display())]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
    },
    /// The new text could not be written next to the file or moved into its place.
    #[error("failed to write `{}`; the previous file is still there", path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl ConfigJson {
    /// Opens the file at `path`. If it does not exist, it counts as an empty object, and the first change creates it.
    #[must_use]
    pub fn open(path: impl Into<PathBuf>) -> Self {
        ConfigJson {
            path: path.into(),
            writing: Arc::default(),
        }
    }

    /// Returns the path as it was given; the file need not exist.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the whole object.
    ///
    /// # Errors
    /// If the file cannot be read, is too large, is nested too deeply, or is not a JSON object.
    pub fn read(&self) -> Result<Map<String, Value>, ConfigJsonError> {
        let path = self.path();
        let failed = |source| ConfigJsonError::Read {
            path: path.to_owned(),
            source,
        };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut text = Vec::new();
        let limit = u64::try_from(LONGEST).unwrap_or(u64::MAX) + 1;
        file.take(limit).read_to_end(&mut text).map_err(failed)?;
        if text.len() > LONGEST {
            return Err(self.too_large());
        }
        // The parser itself refuses values that are nested deeper than 128.
        serde_json::from_slice(&text).map_err(|source| ConfigJsonError::Damaged {
            path: path.to_owned(),
            source,
        })
    }

    /// Returns the value of one key; `None` if it is absent.
    ///
    /// # Errors
    /// As [`ConfigJson::read`].
    pub fn get(&self, key: &str) -> Result<Option<Value>, ConfigJsonError> {
        Ok(self.read()?.remove(key))
    }

    /// Changes the file. Keys that `change` does not touch are kept, known to us or not; if nothing changes, nothing is
    /// written. After a power cut either the old or the new file exists.
    ///
    /// # Errors
    /// As [`ConfigJson::read`]; if the file would get too large, or cannot be written.
    pub fn update<R>(
        &self,
        change: impl FnOnce(&mut Map<String, Value>) -> R,
    ) -> Result<R, ConfigJsonError> {
        let _one_writer = self.writing.lock();
        let before = self.read()?;
        let mut after = before.clone();
        let answer = change(&mut after);
        if after != before {
            self.write(&after)?;
        }
        Ok(answer)
    }

    fn write(&self, map: &Map<String, Value>) -> Result<(), ConfigJsonError> {
        let failed = |source| ConfigJsonError::Write {
            path: self.path().to_owned(),
            source,
        };
        let mut text =
            serde_json::to_vec_pretty(map).map_err(|error| failed(io::Error::other(error)))?;
        text.push(b'\n');
        if text.len() > LONGEST {
            return Err(self.too_large());
        }
        // A link is kept, and its target is replaced.
        let path = fs::canonicalize(self.path()).unwrap_or_else(|_| self.path().to_owned());
        replace(&path, &text).map_err(failed)
    }

    fn too_large(&self) -> ConfigJsonError {
        ConfigJsonError::TooLarge {
            path: self.path().to_owned(),
        }
    }
}

/// Replaces the file at `path` with `text` in one step.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("a path without a folder"));
    };
    // The name is fixed, so the next change overwrites a file left by a power cut.
    let mut new = std::ffi::OsString::from(".");
    new.push(name);
    new.push(".new");
    let new = folder.join(new);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write_new(&new, path, text).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
        return written;
    }
    File::open(folder)?.sync_all()
}

fn write_new(new: &Path, old: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        // The file holds the device's keys.
        .mode(0o600)
        .open(new)?;
    if let Ok(before) = fs::metadata(old) {
        let mode = before.permissions().mode() & 0o777;
        // Boot partitions often have a file system without modes.
        let _ = file.set_permissions(fs::Permissions::from_mode(mode));
    }
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
