//! The two files, in a folder of the boot partition: `redsocks.conf` and `no_proxy`.
//!
//! A file is written beside its place and renamed, so that a power cut leaves the old one or the new one,
//! also on FAT. What a cut left beside is written over the next time.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

/// The most that is read of a file, in bytes.
const SIZE: u64 = 256 << 10;

/// The text of a file; none where there is no such file. What is no UTF-8 in it is replaced.
pub(crate) fn read(folder: &Path, name: &str) -> Result<Option<String>, String> {
    let failed = |error: io::Error| format!("failed to read `{name}`: {error}");
    let file = match File::open(folder.join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(SIZE + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > SIZE {
        return Err(format!("`{name}` has more than {SIZE} bytes"));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Writes the file whole, or not at all; leaves it alone where it holds `text` already.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    if matches!(read(folder, name), Ok(Some(before)) if before == text) {
        return Ok(());
    }
    let replace = || {
        let beside = folder.join(format!("{name}.new"));
        let mut file = File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        drop(file);
        fs::rename(beside, folder.join(name))?;
        sync(folder)
    };
    replace().map_err(|error| format!("failed to write `{name}`: {error}"))
}

/// Removes the file, if it is there.
pub(crate) fn remove(folder: &Path, name: &str) -> Result<(), String> {
    match fs::remove_file(folder.join(name)).and_then(|()| sync(folder)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("failed to remove `{name}`: {error}"))
        }
        _ => Ok(()),
    }
}

/// What was renamed or removed is so after a power cut, too.
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
        write(folder, "a", "one").unwrap();
        write(folder, "a", "two").unwrap();
        assert_eq!(read(folder, "a"), Ok(Some("two".to_owned())));
        remove(folder, "a").unwrap();
        remove(folder, "a").unwrap();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_as_wanted_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "same").unwrap();
        let before = fs::metadata(folder.path().join("a")).unwrap();
        write(folder.path(), "a", "same").unwrap();
        let after = fs::metadata(folder.path().join("a")).unwrap();
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!(before.ino(), after.ino());
    }

    #[test]
    fn a_file_of_any_bytes_is_read_up_to_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), b"\xff\0\xfe").unwrap();
        let text = read(folder.path(), "a").unwrap().unwrap();
        assert_eq!(text, "\u{fffd}\0\u{fffd}");
        fs::write(folder.path().join("a"), vec![b'x'; (SIZE as usize) + 1]).unwrap();
        assert!(read(folder.path(), "a").is_err());
        fs::create_dir(folder.path().join("b")).unwrap();
        assert!(read(folder.path(), "b").is_err());
    }
}
