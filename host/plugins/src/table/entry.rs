//! The state of one file in a plugin folder: what of it serves, and what has become of its current content.

use std::sync::Arc;

use device_types::PluginState;
use plugin_manifest::Manifest;
use plugin_protocol::text::cut;

use crate::loaded::LoadedPlugin;

/// The state of one file.
#[derive(Clone, Default)]
pub(crate) struct Entry {
    pub(crate) serving: Option<Arc<LoadedPlugin>>,
    /// The file's current content, if it is not what serves.
    pub(crate) other: Option<UnservedContent>,
}

impl Entry {
    /// Returns the manifests of the serving version and of the file's current content, as far as they could be read.
    pub(super) fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        let serving = self.serving.as_ref().map(|plugin| &plugin.manifest);
        let other = self
            .other
            .as_ref()
            .and_then(|other| other.manifest.as_ref());
        serving.into_iter().chain(other)
    }

    /// Returns the first of these manifests.
    pub(super) fn manifest(&self) -> Option<&Manifest> {
        self.manifests().next()
    }

    pub(super) fn state(&self) -> PluginState {
        match (
            &self.serving,
            self.other.as_ref().map(|other| &other.standing),
        ) {
            (Some(_), _) => PluginState::Running,
            (None, Some(FileStanding::Refused(_))) => PluginState::Refused,
            (None, Some(FileStanding::Loading)) => PluginState::Loading,
            (None, Some(FileStanding::OtherBoard) | None) => PluginState::OtherBoard,
        }
    }
}

#[derive(Clone)]
pub(crate) struct UnservedContent {
    /// If it could be read.
    pub(crate) manifest: Option<Manifest>,
    pub(crate) digest: String,
    pub(crate) standing: FileStanding,
}

/// Why a file's current content does not serve.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum FileStanding {
    /// It is being read or compiled, or waits for another that is.
    Loading,
    /// It is for other boards than this one.
    OtherBoard,
    /// What is wrong with it.
    Refused(String),
}

impl FileStanding {
    /// Creates a refusal. A reason may contain text from the file, such as a line of its manifest or the names of its
    /// imports: it is cut.
    pub(crate) fn refused(reason: impl Into<String>) -> FileStanding {
        FileStanding::Refused(cut(reason.into()))
    }
}

impl UnservedContent {
    pub(super) fn refused(&self) -> Option<&str> {
        match &self.standing {
            FileStanding::Refused(reason) => Some(reason),
            FileStanding::Loading | FileStanding::OtherBoard => None,
        }
    }
}
