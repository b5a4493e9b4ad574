//! Writing a plugin's file and the signature next to it so that they always match: both are the old ones, or both are
//! the new ones.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::signature;

/// Why a file and its signature were not replaced.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplaceError {
    /// Both are unchanged.
    #[error("`{path}` cannot be written: {cause}; make room or the folder writable, and try again")]
    Unchanged { path: PathBuf, cause: io::Error },
    /// The file is unchanged, but the signature next to it is not.
    #[error(
        "`{file}` cannot be written: {cause}; nor can its signature `{signature}` be put back: {restoring}; {remedy}"
    )]
    SignatureLost {
        file: PathBuf,
        cause: io::Error,
        signature: PathBuf,
        restoring: io::Error,
        remedy: String,
    },
}

/// Replaces the existing `file` and the signature next to it; `None` removes the signature.
///
/// Everything is written under other names before anything is renamed, so a lack of space is noticed while the present
/// pair is untouched. The signature is renamed first: a supervisor that reads the files in between already knows who
/// signed the present content, and reads the new content with its own signature.
///
/// # Errors
/// [`ReplaceError`].
pub(crate) fn replace(
    file: &Path,
    content: &[u8],
    signature: Option<&[u8]>,
) -> Result<(), ReplaceError> {
    let beside = signature::file_beside(file);
    let unchanged = |path: &Path| {
        let path = path.to_owned();
        |cause| ReplaceError::Unchanged { path, cause }
    };
    let present = TemporaryFile::copy_of(&beside).map_err(unchanged(&beside))?;
    let new_signature = signature
        .map(|text| TemporaryFile::for_file(&beside, text, file))
        .transpose()
        .map_err(unchanged(&beside))?;
    let new_file = TemporaryFile::for_file(file, content, file).map_err(unchanged(file))?;

    match &new_signature {
        Some(new) => new.rename_to(&beside),
        None if present.is_some() => fs::remove_file(&beside),
        None => Ok(()),
    }
    .map_err(unchanged(&beside))?;
    let Err(cause) = new_file.rename_to(file) else {
        return Ok(());
    };
    let restored = match &present {
        Some(copy) => copy.rename_to(&beside),
        None if new_signature.is_some() => fs::remove_file(&beside),
        None => Ok(()),
    };
    let Err(restoring) = restored else {
        return Err(unchanged(file)(cause));
    };
    let remedy = match present {
        Some(copy) => format!("rename `{}` to that", copy.keep().display()),
        None => "remove that".to_owned(),
    };
    Err(ReplaceError::SignatureLost {
        file: file.to_owned(),
        cause,
        signature: beside,
        restoring,
        remedy,
    })
}

/// Creates `file`, which must not exist, in one step; everyone may read it.
///
/// # Errors
/// [`ReplaceError::Unchanged`] if it cannot be written.
pub(crate) fn create(file: &Path, content: &[u8]) -> Result<(), ReplaceError> {
    let path = file.with_added_extension("new");
    let write = || {
        // An existing link would lead elsewhere.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut opened = options
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&path)?;
        let new = TemporaryFile(path.clone());
        opened.write_all(content)?;
        opened.sync_all()?;
        new.rename_to(file)
    };
    write().map_err(|cause| ReplaceError::Unchanged {
        path: file.to_owned(),
        cause,
    })
}

/// Replaces the existing `file` in one step.
///
/// # Errors
/// If it cannot be written; it is then unchanged.
pub(crate) fn replace_alone(file: &Path, content: &[u8]) -> io::Result<()> {
    TemporaryFile::for_file(file, content, file)?.rename_to(file)
}

/// A file next to another one; it is removed unless it is renamed to that one.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Writes the future content of `file`, with the permissions of `model`.
    fn for_file(file: &Path, content: &[u8], model: &Path) -> io::Result<TemporaryFile> {
        let path = file.with_added_extension("new");
        let mut opened = File::create(&path)?;
        let new = TemporaryFile(path);
        opened.set_permissions(fs::metadata(model)?.permissions())?;
        opened.write_all(content)?;
        opened.sync_all()?;
        Ok(new)
    }

    /// Creates a copy of `file`; returns `None` if it does not exist.
    fn copy_of(file: &Path) -> io::Result<Option<TemporaryFile>> {
        let copy = TemporaryFile(file.with_added_extension("old"));
        match fs::copy(file, &copy.0) {
            Ok(_) => Ok(Some(copy)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename_to(&self, file: &Path) -> io::Result<()> {
        fs::rename(&self.0, file)
    }

    /// Leaves the file in place.
    fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // If it was renamed, it no longer exists.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Creates a folder with the file `a.wasm` and this signature next to it.
    fn folder(signature: Option<&[u8]>) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.wasm"), "one").unwrap();
        if let Some(signature) = signature {
            fs::write(folder.path().join("a.wasm.minisig"), signature).unwrap();
        }
        folder
    }

    /// Returns the files in the folder, with their contents.
    fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        files
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read(entry.path()).unwrap())
            })
            .collect()
    }

    /// The present signature, and the new one.
    type Signatures = (Option<&'static [u8]>, Option<&'static [u8]>);

    const SIGNATURES: [Signatures; 4] = [
        (None, None),
        (None, Some(b"by new")),
        (Some(b"by old"), None),
        (Some(b"by old"), Some(b"by new")),
    ];

    #[test]
    fn a_file_is_replaced_together_with_its_signature() {
        for (present, new) in SIGNATURES {
            let folder = folder(present);
            replace(&folder.path().join("a.wasm"), b"two", new).unwrap();
            let mut expected = BTreeMap::from([("a.wasm".to_owned(), b"two".to_vec())]);
            if let Some(new) = new {
                expected.insert("a.wasm.minisig".to_owned(), new.to_vec());
            }
            assert_eq!(files(folder.path()), expected, "{present:?} {new:?}");
        }
    }

    /// One of the names under which they are written is taken by a folder, which fails like a full disk.
    #[test]
    fn a_file_keeps_its_signature_if_one_of_both_cannot_be_written() {
        for (present, new) in SIGNATURES {
            for obstacle in ["a.wasm.new", "a.wasm.minisig.new", "a.wasm.minisig.old"] {
                if (obstacle == "a.wasm.minisig.new" && new.is_none())
                    || (obstacle == "a.wasm.minisig.old" && present.is_none())
                {
                    continue;
                }
                let folder = folder(present);
                fs::create_dir(folder.path().join(obstacle)).unwrap();
                let before = files(folder.path());
                let failed = replace(&folder.path().join("a.wasm"), b"two", new);
                let error = failed.unwrap_err();
                assert!(
                    matches!(error, ReplaceError::Unchanged { .. }),
                    "{obstacle}: {error}"
                );
                assert_eq!(files(folder.path()), before, "{obstacle}");
            }
        }
    }

    /// The second name is that of a folder, which a file cannot replace.
    #[test]
    fn a_file_keeps_its_signature_if_it_cannot_be_renamed_after_it() {
        for (present, new) in SIGNATURES {
            let folder = folder(present);
            let file = folder.path().join("a.wasm");
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
            let before = files(folder.path());
            let error = replace(&file, b"two", new).unwrap_err();
            assert!(matches!(error, ReplaceError::Unchanged { .. }), "{error}");
            assert!(error.to_string().contains("a.wasm` cannot be written"));
            assert_eq!(files(folder.path()), before, "{present:?} {new:?}");
        }
    }
}
