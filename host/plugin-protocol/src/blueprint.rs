//! What instances of a plugin are made from, as plain data, and what is known of its component.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Action, Capability, Limits};

/// What instances of one version of a plugin are made from, beside its native code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blueprint {
    /// The plugin's name.
    pub name: String,
    /// Its own configuration as JSON.
    pub config: String,
    /// What is linked for it.
    pub grants: BTreeSet<Capability>,
    /// What one call may use.
    pub limits: Limits,
    /// What a component that answers as `wasi:http` does not see of a request's path, where that begins with it.
    pub base_path: Option<String>,
    /// The folders that it sees.
    pub folders: Vec<FolderView>,
}

/// A folder of the host that a plugin sees.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FolderView {
    /// Where it is.
    pub host: PathBuf,
    /// Where the plugin sees it.
    pub guest: String,
    /// Whether the plugin may change what is in it.
    pub write: bool,
    /// Whether the plugin is called all the same where the folder is missing, and does not see it.
    pub optional: bool,
}

/// What a component is, as far as the host asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentFacts {
    /// The interfaces that it imports, but for those of types alone.
    pub imports: Vec<String>,
    /// Whether it exports `platform:supervisor/handler` or `wasi:http/incoming-handler`.
    pub has_handler: bool,
    /// The actions that it exports.
    pub actions: BTreeSet<Action>,
    /// How many memories an instance has.
    pub memories: u32,
    /// Why it cannot be linked with all that a plugin can be granted, or which of its exports has not our type.
    pub link_error: Option<String>,
}
