//! The plugin's own small store. The limits are those of the store.

use std::sync::Arc;

use crate::blocking::blocking;
use crate::config::{DataError, PluginData};
use crate::plugin_context::PluginContext;

impl PluginContext {
    /// Runs `operation` on the data of this plugin, where it may wait for the disk.
    pub(super) async fn with_data<R: Send + 'static>(
        self: &Arc<Self>,
        operation: impl FnOnce(&dyn PluginData, &str) -> Result<R, DataError> + Send + 'static,
    ) -> Result<R, DataError> {
        let context = Arc::clone(self);
        let operation = move || operation(&*context.services.data, &context.data_owner());
        let stopping = || DataError::Other("the store is shutting down".to_owned());
        blocking(operation).await.ok_or_else(stopping)?
    }
}
