//! Who a plugin is called for.

use serde::{Deserialize, Serialize};

/// Who a plugin is called for (`wit/caller.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// What the caller may see and touch on the device.
    pub scope: CallerScope,
    /// The plugin that has an action done; `None` where the host has it done, and for a request.
    pub plugin: Option<String>,
}

/// What a caller may see and touch on the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallerScope {
    /// The device is the caller, for its target state.
    Device,
    /// Whoever has the device's own key: everything.
    DeviceKey,
    /// Whoever needs no key in local mode: everything.
    LocalMode,
    /// Whoever has the key of a service: what belongs to its app.
    Service {
        /// The app's number.
        app_id: u64,
        /// The service's name in the app.
        service: String,
    },
    /// An instance that starts: it serves no call yet.
    NoCall,
}

impl Caller {
    /// A caller that is no plugin.
    #[must_use]
    pub fn of(scope: CallerScope) -> Caller {
        Caller {
            scope,
            plugin: None,
        }
    }

    /// The plugin `name`, which has an action done while it serves this caller.
    #[must_use]
    pub fn through(&self, name: &str) -> Caller {
        Caller {
            scope: self.scope.clone(),
            plugin: Some(name.to_owned()),
        }
    }
}
