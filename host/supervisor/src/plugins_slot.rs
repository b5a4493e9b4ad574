//! Access to the plugins for parts of the supervisor that are created before them and are
//! referenced by them in turn.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::endpoints::PluginEndpoints;

/// Holds the plugins from their start until the supervisor stops. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct PluginsSlot(Arc<Mutex<Option<PluginEndpoints>>>);

impl PluginsSlot {
    /// Attaches the plugins.
    pub(crate) fn attach(&self, plugins: &PluginEndpoints) {
        *self.0.lock() = Some(plugins.clone());
    }

    /// Drops the plugins, which in turn hold the owner of this: otherwise none of them is ever freed, and the store
    /// stays open.
    pub(crate) fn detach(&self) {
        *self.0.lock() = None;
    }

    /// Returns the plugins, while they are attached.
    pub(crate) fn get(&self) -> Option<PluginEndpoints> {
        self.0.lock().clone()
    }
}
