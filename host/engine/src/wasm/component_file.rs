//! A component as bytes, and as the file that a `file:` reference names.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use model::{EngineImageId, EngineKind, ImageRef};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::EngineError;

/// The largest component that is accepted, in bytes.
pub(super) const MAX_COMPONENT: u64 = 64 << 20;

/// Shows that a file has changed, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileMark {
    device: u64,
    inode: u64,
    size: u64,
    /// Nanoseconds since the epoch: of the content, and of the file's entry, which cannot be set by
    /// programs.
    modified: i128,
    changed: i128,
}

impl FileMark {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        FileMark {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Returns the path that a `file:` reference names.
///
/// # Errors
/// [`EngineError::Invalid`] if it is not absolute.
pub(super) fn file_path(reference: &ImageRef) -> Result<PathBuf, EngineError> {
    let text = reference.as_str();
    let path = text.strip_prefix("file:").unwrap_or(text);
    // Both `file:/path` and `file:///path` are in use.
    let path = path
        .strip_prefix("//")
        .filter(|p| p.starts_with('/'))
        .unwrap_or(path);
    if path.starts_with('/') {
        return Ok(PathBuf::from(path));
    }
    Err(EngineError::Invalid(format!(
        "`{reference}` does not name a file: the path after `file:` begins with `/`"
    )))
}

/// Opens the file at `path`, if it is a regular file: a pipe could block its opener or reader for ever, and opening a
/// device may have effects.
pub(super) fn open_file(path: &Path) -> io::Result<(File, Metadata)> {
    let no_file = || io::Error::other("it is not a file");
    // Checked before the file is opened, because of devices, and once more afterwards, because it
    // may be another by then.
    if !fs::metadata(path)?.is_file() {
        return Err(no_file());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(no_file())
    }
}

pub(super) fn digest_file(path: &Path) -> Result<(EngineImageId, u64), EngineError> {
    let failed = |error| EngineError::failed(format!("read `{}`", path.display()), error);
    let mut digest = Sha256::new();
    let (file, _) = open_file(path).map_err(failed)?;
    let size = io::copy(&mut file.take(MAX_COMPONENT + 1), &mut digest).map_err(failed)?;
    Ok((image_id(&digest.finalize())?, size))
}

/// # Errors
/// Never: the text is a valid id.
pub(super) fn image_id(digest: &[u8]) -> Result<EngineImageId, EngineError> {
    let id = format!("sha256:{}", hex::encode(digest)).parse();
    id.map_err(|error| EngineError::failed("name a component", error))
}

pub(super) fn too_large(reference: &ImageRef) -> EngineError {
    EngineError::Invalid(format!(
        "the component of `{reference}` is larger than {} MiB",
        MAX_COMPONENT >> 20
    ))
}

/// # Errors
/// [`EngineError::WrongKind`] if the bytes cannot be a component.
pub(super) fn check_component(reference: &ImageRef, bytes: &[u8]) -> Result<(), EngineError> {
    let reason = match bytes.get(..8) {
        Some(b"\0asm\x0d\0\x01\0") => return Ok(()),
        Some(b"\0asm\x01\0\0\0") => {
            "it is a core module, not a component; build it for the target wasm32-wasip2"
        }
        _ => "it is not a WebAssembly file",
    };
    Err(EngineError::WrongKind {
        image: reference.to_string(),
        engine: EngineKind::Wasm,
        reason: reason.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(text: &str) -> ImageRef {
        text.parse().unwrap()
    }

    #[test]
    fn file_references_are_absolute_paths() {
        for (text, path) in [
            ("file:/srv/a.wasm", Some("/srv/a.wasm")),
            ("file:///srv/a.wasm", Some("/srv/a.wasm")),
            ("file:a.wasm", None),
            ("file:", None),
            ("file://host/a.wasm", Some("//host/a.wasm")),
        ] {
            let found = file_path(&reference(text)).ok();
            assert_eq!(found.as_deref(), path.map(Path::new), "{text}");
        }
    }

    #[test]
    fn only_components_are_taken() {
        let web = reference("web:1");
        assert!(check_component(&web, b"\0asm\x0d\0\x01\0rest").is_ok());
        for (bytes, says) in [
            (&b"\0asm\x01\0\0\0"[..], "wasm32-wasip2"),
            (b"\x7fELF....", "not a WebAssembly"),
            (b"", "not a WebAssembly"),
        ] {
            let error = check_component(&web, bytes).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
