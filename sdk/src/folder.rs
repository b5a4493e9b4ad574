//! Small files in a folder that the policy grants to the plugin. Capability `files`.
//!
//! A file is written under a temporary name and then renamed, so a power cut leaves either the old or the new file,
//! also on FAT. A temporary file that a power cut left behind is overwritten the next time. After a failure it is removed:
//! a disk that is full would otherwise keep a part of it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

/// The most bytes that are read from or written to a file.
const SIZE: usize = 256 << 10;

/// Returns the bytes of a file; `None` if there is no such file.
///
/// # Errors
/// If the file cannot be read, is not a plain file, or has more than 256 KiB.
pub fn read(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, String> {
    let failed = |error: io::Error| format!("failed to read `{name}`: {error}");
    let file = match open(&folder.join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(SIZE as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    check(name, &bytes)?;
    Ok(Some(bytes))
}

fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe would wait for its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    File::open(path)
}

/// Writes a file completely or not at all; does nothing if it already has these bytes.
///
/// # Errors
/// If the file cannot be written, or would have more than 256 KiB.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    check(name, bytes)?;
    if matches!(read(folder, name), Ok(Some(before)) if before == bytes) {
        return Ok(());
    }
    replace(folder, name, bytes).map_err(|error| format!("failed to write `{name}`: {error}"))
}

fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let beside = folder.join(format!("{name}.new"));
    let mut file = File::create(&beside)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, folder.join(name)));
    if written.is_err() {
        // The caller gets the first error, which says more.
        let _ = fs::remove_file(&beside);
    }
    written?;
    sync(folder)
}

/// Removes a file if it exists.
///
/// # Errors
/// If the file cannot be removed.
pub fn remove(folder: &Path, name: &str) -> Result<(), String> {
    match fs::remove_file(folder.join(name)).and_then(|()| sync(folder)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("failed to remove `{name}`: {error}"))
        }
        _ => Ok(()),
    }
}

fn check(name: &str, bytes: &[u8]) -> Result<(), String> {
    match bytes.len() {
        length if length > SIZE => Err(format!("`{name}` has more than {SIZE} bytes")),
        _ => Ok(()),
    }
}

/// Makes renames and removals in the folder survive a power cut.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_whole_and_what_a_cut_left_is_no_hindrance() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(read(folder, "a"), Ok(None));
        fs::write(folder.join("a.new"), "cut sho").unwrap();
        write(folder, "a", b"one").unwrap();
        write(folder, "a", b"\xff\0").unwrap();
        assert_eq!(read(folder, "a"), Ok(Some(b"\xff\0".to_vec())));
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
        remove(folder, "a").unwrap();
        remove(folder, "a").unwrap();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    }

    #[test]
    fn a_failure_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        write(folder.path(), "a", b"one").unwrap_err();
        let names = fs::read_dir(folder.path()).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["a"]);
    }

    /// Nobody opens its other end.
    #[test]
    fn a_pipe_is_not_read_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("a");
        let made = std::process::Command::new("mkfifo").arg(pipe).status();
        assert!(made.unwrap().success());
        let error = read(folder.path(), "a").unwrap_err();
        assert_eq!(error, "failed to read `a`: it is not a plain file");
        write(folder.path(), "a", b"one").unwrap();
        assert_eq!(read(folder.path(), "a"), Ok(Some(b"one".to_vec())));
    }

    #[test]
    fn a_file_with_the_right_content_is_not_written() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "same").unwrap();
        let before = fs::metadata(folder.path().join("a")).unwrap();
        write(folder.path(), "a", b"same").unwrap();
        let after = fs::metadata(folder.path().join("a")).unwrap();
        assert_eq!(before.ino(), after.ino());
    }

    #[test]
    fn a_file_that_is_too_large_is_neither_read_nor_written() {
        let folder = tempfile::tempdir().unwrap();
        let large = vec![b'x'; SIZE + 1];
        write(folder.path(), "a", &large).unwrap_err();
        assert_eq!(read(folder.path(), "a"), Ok(None));
        fs::write(folder.path().join("a"), large).unwrap();
        read(folder.path(), "a").unwrap_err();
        fs::create_dir(folder.path().join("b")).unwrap();
        read(folder.path(), "b").unwrap_err();
    }
}
