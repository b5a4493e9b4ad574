//! A small store of the plugin's own. The limits are the store's.

use std::sync::Arc;

use plugin_protocol::{StoreDelete, StoreGet, StoreKeys, StoreSet};

use crate::blocking::blocking;
use crate::config::{DataError, PluginData};
use crate::plugin_context::PluginContext;

impl PluginContext {
    pub(super) async fn stored(
        self: &Arc<Self>,
        StoreGet { key }: StoreGet,
    ) -> Result<Option<Vec<u8>>, DataError> {
        self.with_data(move |data, plugin| data.get(plugin, &key))
            .await
    }

    pub(super) async fn store(
        self: &Arc<Self>,
        StoreSet { key, value }: StoreSet,
    ) -> Result<(), DataError> {
        self.with_data(move |data, plugin| data.set(plugin, &key, &value))
            .await
    }

    pub(super) async fn delete_stored(
        self: &Arc<Self>,
        StoreDelete { key }: StoreDelete,
    ) -> Result<(), DataError> {
        self.with_data(move |data, plugin| data.delete(plugin, &key))
            .await
    }

    pub(super) async fn stored_keys(
        self: &Arc<Self>,
        StoreKeys { prefix }: StoreKeys,
    ) -> Result<Vec<String>, DataError> {
        self.with_data(move |data, plugin| data.keys(plugin, &prefix))
            .await
    }

    /// Runs `operation` where it may wait for the disk.
    async fn with_data<R: Send + 'static>(
        self: &Arc<Self>,
        operation: impl FnOnce(&dyn PluginData, &str) -> Result<R, DataError> + Send + 'static,
    ) -> Result<R, DataError> {
        let context = Arc::clone(self);
        let operation = move || operation(&*context.services.data, &context.data_owner());
        let stopping = || DataError::Other("the store is shutting down".to_owned());
        blocking(operation).await.ok_or_else(stopping)?
    }
}
