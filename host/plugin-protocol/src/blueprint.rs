//! Plain data that instances of a plugin are created from, and the known facts about its component.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Action, Capability, Limits};

/// The data that instances of one version of a plugin are created from, apart from its native code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blueprint {
    /// The plugin's name.
    pub name: String,
    /// Its own configuration as JSON.
    pub config: String,
    /// The capabilities that are linked for it.
    pub grants: BTreeSet<Capability>,
    /// The limits of one call.
    pub limits: Limits,
    /// The prefix that is removed from a request's path for a component that answers as `wasi:http`, if the path begins
    /// with it.
    pub base_path: Option<String>,
    /// The folders that are visible to it.
    pub folders: Vec<FolderView>,
}

/// A folder of the host that is visible to a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FolderView {
    /// The path on the host.
    pub host: PathBuf,
    /// The path inside the plugin.
    pub guest: String,
    /// Whether the plugin may change the contents.
    pub write: bool,
    /// Whether the plugin is still called if the folder is missing; it then does not see the folder.
    pub optional: bool,
}

/// Facts about a component that the host needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentFacts {
    /// The interfaces that it imports, except those that contain only types.
    #[serde(with = "crate::bounded_list")]
    pub imports: Vec<String>,
    /// Whether it exports `platform:supervisor/handler` or `wasi:http/incoming-handler`.
    pub has_handler: bool,
    /// The actions that it exports.
    pub actions: BTreeSet<Action>,
    /// How many of the places for calls an instance takes.
    pub places: u32,
    /// Why it cannot be linked with everything that a plugin can be granted, or which of its exports does not have our
    /// type.
    pub link_error: Option<String>,
}
