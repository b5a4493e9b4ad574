//! On whose behalf a plugin is called.

use serde::{Deserialize, Serialize};

/// On whose behalf a plugin is called (`wit/caller.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// What the caller may see and change on the device.
    pub scope: CallerScope,
    /// The plugin that requested the action; `None` if the host requested it, and for HTTP
    /// requests.
    pub plugin: Option<String>,
}

/// What a caller may see and change on the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallerScope {
    /// The device itself is the caller, for its target state.
    Device,
    /// A caller with the device's own key: everything.
    DeviceKey,
    /// A caller that needs no key in local mode: everything.
    LocalMode,
    /// A caller with the key of a service: only what belongs to its app.
    Service {
        /// The app's number.
        app_id: u64,
        /// The service's name in the app.
        service: String,
    },
    /// An instance that is starting: it serves no call yet.
    NoCall,
}

impl Caller {
    /// Creates a caller that is not a plugin.
    #[must_use]
    pub fn from_scope(scope: CallerScope) -> Caller {
        Caller {
            scope,
            plugin: None,
        }
    }

    /// Returns the caller for an action that the plugin `name` requests while it serves this
    /// caller.
    #[must_use]
    pub fn through(&self, name: &str) -> Caller {
        Caller {
            scope: self.scope.clone(),
            plugin: Some(name.to_owned()),
        }
    }
}
