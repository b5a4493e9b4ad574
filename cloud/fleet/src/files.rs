//! Files that commands write.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

use crate::failure::{Failure, Result};

/// Writes a new file, which has these permissions from the beginning.
///
/// # Errors
/// If the file exists already, or cannot be written.
pub(crate) fn write_new(path: &Path, text: &str, mode: u32) -> Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::unwritable(path, error))
}

/// Creates a temporary file in the folder of `path`, which can replace it once it is complete; until then it is deleted
/// with the value.
///
/// # Errors
/// If the folder is not writable.
pub(crate) fn beside(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    Builder::new()
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
}
