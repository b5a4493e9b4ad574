//! A plugin's file as it was last read, what came of it, and what is being done with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plugin_protocol::GuestCode;
use signatures::PublicKey;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::loaded::LoadedPlugin;
use crate::policy::Grants;
use crate::settled_file::{FileHead, Stamp};
use crate::table::{Other, Standing};
use plugin_manifest::Manifest;

/// A file of a plugin folder.
#[derive(Default)]
pub(crate) struct FileRecord {
    /// The file that this one stands in for: a version that served from it before, and is kept.
    pub(crate) stands_in_for: Option<PathBuf>,
    /// Why nothing is loaded from where it is.
    pub(crate) place: Option<String>,
    /// What it was like when it was read; none where it could not be read.
    pub(crate) stamp: Option<Stamp>,
    /// None until it is read for the first time.
    pub(crate) head: Option<Result<FileHead, String>>,
    /// Its content in native code.
    pub(crate) code: NativeCode,
    /// Its content, linked; also where another plugin keeps it from serving.
    pub(crate) loaded: Option<Arc<LoadedPlugin>>,
    pub(crate) failure: Option<LoadFailure>,
    pub(crate) reading: Option<Task>,
    /// Whether it may have changed since it began to be read.
    pub(crate) read_again: bool,
    /// Until when its writer is expected to close it; none where nobody is writing it.
    pub(crate) pending_until: Option<Instant>,
    /// Until when the file, which is not there, is taken for one that is being replaced; none where it is there.
    pub(crate) missing_until: Option<Instant>,
}

/// How far it is with the native code of a content.
#[derive(Default)]
pub(crate) enum NativeCode {
    /// Nobody has asked for it.
    #[default]
    Unasked,
    /// It is looked for among what was compiled before.
    Sought(#[expect(dead_code, reason = "held for its drop")] Task),
    /// It was not there, and is to be compiled.
    Missing,
    Compiling(#[expect(dead_code, reason = "held for its drop")] Task),
    Ready(Arc<dyn GuestCode>),
}

/// Why a content does not load.
pub(crate) enum LoadFailure {
    Compile(String),
    /// With the grants that it was tried with.
    Link(Box<Grants>, String),
}

/// A task that ends when nobody waits for it any more.
pub(crate) struct Task(pub(crate) AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl FileRecord {
    /// Takes what the file says of itself now. What was made of another content goes.
    pub(crate) fn read(&mut self, read: Result<(Stamp, FileHead), String>) {
        let (stamp, mut head) = match read {
            Ok((stamp, head)) => (Some(stamp), Ok(head)),
            Err(reason) => (None, Err(reason)),
        };
        let digest = head.as_ref().ok().map(|head| head.digest.as_str());
        if self.digest() != digest {
            self.code = NativeCode::Unasked;
            self.loaded = None;
        } else if let (Some(Ok(before)), Ok(head)) = (&self.head, &mut head) {
            // What somebody has signed stays signed by them, also where the file beside it is being replaced
            // by the signature of the next version.
            head.signatures.remember(&before.signatures);
        }
        // Whoever writes a file anew has it tried anew.
        self.failure = None;
        self.stamp = stamp;
        self.head = Some(head);
    }

    /// Whether nobody knows yet what it is, and it is being found out. What is being written may take any time.
    pub(crate) fn is_to_be_read(&self) -> bool {
        self.head.is_none() && self.pending_until.is_none()
    }

    /// Whether its content is in the making, and nothing that was loaded from it stands for it meanwhile.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.pending_until.is_some() && self.loaded.is_none()
    }

    /// What the file says of itself, as far as it could be read.
    pub(crate) fn head(&self) -> Option<&FileHead> {
        self.head.as_ref()?.as_ref().ok()
    }

    /// Its manifest, which makes it a plugin's.
    pub(crate) fn manifest(&self) -> Option<&Manifest> {
        self.head()?.manifest.as_ref().ok()
    }

    /// The plugin's name: the manifest's, or where that cannot be read the one that the file's name stands for.
    pub(crate) fn name(&self, file: &Path) -> String {
        if let Some(manifest) = self.manifest() {
            return manifest.name.clone();
        }
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        // Cargo makes `led_blink.wasm` of the crate `led-blink`.
        stem.replace('_', "-")
    }

    /// The digest of the file as it was last read.
    pub(crate) fn digest(&self) -> Option<&str> {
        Some(&self.head()?.digest)
    }

    /// Whether it has signatures that were checked against other keys.
    pub(crate) fn is_signed_by_others_than(&self, keys: &[PublicKey]) -> bool {
        self.head()
            .is_some_and(|head| head.signatures.are_there() && *head.keys != *keys)
    }

    /// The plugin, if it is linked with these grants.
    pub(crate) fn loaded_with(&self, grants: &Grants) -> Option<&Arc<LoadedPlugin>> {
        let loaded = self.loaded.as_ref();
        loaded.filter(|plugin| plugin.context.grants == *grants)
    }

    /// Why it does not load with these grants, as far as that is known.
    pub(crate) fn failed_with(&self, grants: &Grants) -> Option<&str> {
        match &self.failure {
            Some(LoadFailure::Compile(reason)) => Some(reason),
            Some(LoadFailure::Link(tried, reason)) if **tried == *grants => Some(reason),
            _ => None,
        }
    }

    /// Its size in bytes, as far as it is known.
    pub(crate) fn size(&self) -> u64 {
        self.stamp.as_ref().map_or(0, Stamp::size)
    }

    /// What the report says of it where it is not what serves.
    pub(crate) fn other(&self, standing: Standing) -> Other {
        Other {
            manifest: self.manifest().cloned(),
            digest: self.digest().unwrap_or_default().to_owned(),
            standing,
        }
    }
}
