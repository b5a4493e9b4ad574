//! Files that commands write.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::failure::{Failure, Result};

/// Writes a new file, with rights that it has from the beginning.
///
/// # Errors
/// Where there is one already, or it cannot be written.
pub(crate) fn write_new(path: &Path, text: &str, mode: u32) -> Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::unwritable(path, error))
}
