//! A plugin's file as it was last read, the result, and what is being done with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plugin_protocol::GuestCode;
use signatures::PublicKey;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::loaded::LoadedPlugin;
use crate::policy::Grants;
use crate::settled_file::{FileHead, Stamp};
use crate::table::{FileStanding, UnservedContent};
use plugin_manifest::Manifest;

/// A file in a plugin folder.
#[derive(Default)]
pub(crate) struct FileRecord {
    /// The file that this one stands in for: this is a version that served from it before, and was kept.
    pub(crate) stands_in_for: Option<PathBuf>,
    /// Why nothing may be loaded from its place.
    pub(crate) place: Option<String>,
    /// The file's stamp when it was read; `None` if it could not be read.
    pub(crate) stamp: Option<Stamp>,
    /// `None` until it is read for the first time.
    pub(crate) head: Option<Result<FileHead, String>>,
    /// Its content as native code.
    pub(crate) code: NativeCode,
    /// Its content, linked; also set if another plugin prevents it from serving.
    pub(crate) loaded: Option<Arc<LoadedPlugin>>,
    pub(crate) failure: Option<LoadFailure>,
    pub(crate) reading: Option<Task>,
    /// Whether it may have changed since reading began.
    pub(crate) read_again: bool,
    /// When its writer is expected to have closed it; `None` if it is not being written.
    pub(crate) pending_until: Option<Instant>,
    /// Until when a missing file counts as being replaced; `None` if the file exists.
    pub(crate) missing_until: Option<Instant>,
}

/// The state of a content's native code.
#[derive(Default)]
pub(crate) enum NativeCode {
    /// It was not requested yet.
    #[default]
    NotRequested,
    /// It is being looked up in the cache.
    Sought(#[expect(dead_code, reason = "held for its drop")] Task),
    /// It was not in the cache, and has to be compiled.
    Missing,
    Compiling(#[expect(dead_code, reason = "held for its drop")] Task),
    Ready(Arc<dyn GuestCode>),
}

/// Why a content could not be loaded.
pub(crate) enum LoadFailure {
    Compile(String),
    /// With the grants that were tried.
    Link(Box<Grants>, String),
}

/// A task that ends when this is dropped.
pub(crate) struct Task(pub(crate) AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl FileRecord {
    /// Records what was read from the file. Results for a different content are dropped.
    pub(crate) fn read(&mut self, read: Result<(Stamp, FileHead), String>) {
        let (stamp, mut head) = match read {
            Ok((stamp, head)) => (Some(stamp), Ok(head)),
            Err(reason) => (None, Err(reason)),
        };
        let digest = head.as_ref().ok().map(|head| head.digest.as_str());
        if self.digest() != digest {
            self.code = NativeCode::NotRequested;
            self.loaded = None;
        } else if let (Some(Ok(before)), Ok(head)) = (&self.head, &mut head) {
            // A content that was signed stays signed, even while the signature file next to it is being replaced by
            // that of the next version.
            head.signatures.remember(&before.signatures);
        }
        // Writing the file again causes another attempt.
        self.failure = None;
        self.stamp = stamp;
        self.head = Some(head);
    }

    /// Returns whether its content is still unknown, and is being read. A file that is being written may take any time,
    /// and one in a place that others can write to is not read.
    pub(crate) fn is_to_be_read(&self) -> bool {
        self.head.is_none() && self.pending_until.is_none() && self.place.is_none()
    }

    /// Returns whether its content is being written, and nothing loaded from it is available in the meantime.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.pending_until.is_some() && self.loaded.is_none()
    }

    /// Returns the file's head, if it could be read.
    pub(crate) fn head(&self) -> Option<&FileHead> {
        self.head.as_ref()?.as_ref().ok()
    }

    /// Returns its manifest; only a plugin has one.
    pub(crate) fn manifest(&self) -> Option<&Manifest> {
        self.head()?.manifest.as_ref().ok()
    }

    /// Returns the plugin's name from the manifest or, if that cannot be read, the name derived from the file's name.
    pub(crate) fn name(&self, file: &Path) -> String {
        if let Some(manifest) = self.manifest() {
            return manifest.name.clone();
        }
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        // Cargo creates `led_blink.wasm` from the crate `led-blink`.
        stem.replace('_', "-")
    }

    /// Returns the digest of the file as it was last read.
    pub(crate) fn digest(&self) -> Option<&str> {
        Some(&self.head()?.digest)
    }

    /// Returns whether it has signatures that were checked against other keys.
    pub(crate) fn is_signed_by_others_than(&self, keys: &[PublicKey]) -> bool {
        self.head()
            .is_some_and(|head| head.signatures.are_there() && *head.keys != *keys)
    }

    /// Returns the plugin if it is linked with these grants.
    pub(crate) fn loaded_with(&self, grants: &Grants) -> Option<&Arc<LoadedPlugin>> {
        let loaded = self.loaded.as_ref();
        loaded.filter(|plugin| plugin.context.grants == *grants)
    }

    /// Returns why it cannot be loaded with these grants, as far as that is known.
    pub(crate) fn failed_with(&self, grants: &Grants) -> Option<&str> {
        match &self.failure {
            Some(LoadFailure::Compile(reason)) => Some(reason),
            Some(LoadFailure::Link(tried, reason)) if **tried == *grants => Some(reason),
            _ => None,
        }
    }

    /// Returns its size in bytes, as far as it is known.
    pub(crate) fn size(&self) -> u64 {
        self.stamp.as_ref().map_or(0, Stamp::size)
    }

    /// Returns its entry in the report if it is not the version in use.
    pub(crate) fn other(&self, standing: FileStanding) -> UnservedContent {
        UnservedContent {
            manifest: self.manifest().cloned(),
            digest: self.digest().unwrap_or_default().to_owned(),
            standing,
        }
    }
}
