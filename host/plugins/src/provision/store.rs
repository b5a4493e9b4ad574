//! The plugin's own small store. The limits are those of the store.

use std::sync::Arc;
use std::time::Duration;

use plugin_protocol::wit::store::{Host, StoreError};

use super::InstanceCall;
use crate::config::{Condition, PluginData, ValueChange};

impl InstanceCall<'_> {
    /// Runs `operation` on the data of this plugin, where it may wait for the disk.
    async fn with_data<R: Send + 'static>(
        &self,
        operation: impl FnOnce(&dyn PluginData, &str) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let (plugin, jobs) = (Arc::clone(self.plugin), &self.plugin.share.jobs);
        let operation = move || operation(&*plugin.services.data, &plugin.data_owner());
        let stopping = || StoreError::Other("the store is shutting down".to_owned());
        jobs.run(operation).await.ok_or_else(stopping)?
    }

    async fn set_value(
        &self,
        key: String,
        value: Vec<u8>,
        lifetime: Option<Duration>,
    ) -> Result<(), StoreError> {
        let result = self.with_data(move |data, plugin| {
            let change = ValueChange {
                lifetime,
                ..ValueChange::set(&value)
            };
            data.change(plugin, &key, &change)
        });
        result.await.map(|_| ())
    }
}

impl Host for InstanceCall<'_> {
    async fn get(&self, key: String) -> Result<Option<Vec<u8>>, StoreError> {
        self.with_data(move |data, plugin| data.get(plugin, &key))
            .await
    }

    async fn set(&self, key: String, value: Vec<u8>) -> Result<(), StoreError> {
        self.set_value(key, value, None).await
    }

    async fn delete(&self, key: String) -> Result<(), StoreError> {
        self.with_data(move |data, plugin| data.delete(plugin, &key))
            .await
    }

    async fn set_for(
        &self,
        key: String,
        value: Vec<u8>,
        milliseconds: u64,
    ) -> Result<(), StoreError> {
        let lifetime = Duration::from_millis(milliseconds);
        self.set_value(key, value, Some(lifetime)).await
    }

    async fn compare_and_set(
        &self,
        key: String,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
        lifetime: Option<u64>,
    ) -> Result<bool, StoreError> {
        self.with_data(move |data, plugin| {
            let change = ValueChange {
                condition: Condition::Holds(expected.as_deref()),
                value: value.as_deref(),
                lifetime: lifetime.map(Duration::from_millis),
            };
            data.change(plugin, &key, &change)
        })
        .await
    }

    async fn keys(&self, prefix: String) -> Result<Vec<String>, StoreError> {
        self.with_data(move |data, plugin| data.keys(plugin, &prefix))
            .await
    }
}
