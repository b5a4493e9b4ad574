//! The plugins, for parts of the supervisor that are there before them and which they reach in turn.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::endpoints::PluginEndpoints;

/// Holds the plugins from when they are there until the supervisor stops. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct PluginsSlot(Arc<Mutex<Option<PluginEndpoints>>>);

impl PluginsSlot {
    /// From now on they are there.
    pub(crate) fn attach(&self, plugins: &PluginEndpoints) {
        *self.0.lock() = Some(plugins.clone());
    }

    /// Lets go of them, which hold in turn who holds this: else none of them is ever freed, and the store stays open.
    pub(crate) fn detach(&self) {
        *self.0.lock() = None;
    }

    /// The plugins, while they are there.
    pub(crate) fn get(&self) -> Option<PluginEndpoints> {
        self.0.lock().clone()
    }
}
