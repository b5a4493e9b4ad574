//! `wit/store.wit`: a small store of the plugin's own. The limits are the store's.

use std::sync::Arc;

use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::store::{self, StoreError};
use crate::config::{DataError, PluginData};
use crate::guest::{Guest, ThisGuest};

impl store::Host for &mut Guest {}

impl store::HostWithStore<Guest> for ThisGuest {
    async fn get(
        accessor: &Accessor<Guest, Self>,
        key: String,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        run(accessor, move |data, plugin| data.get(plugin, &key)).await
    }

    async fn set(
        accessor: &Accessor<Guest, Self>,
        key: String,
        value: Vec<u8>,
    ) -> Result<(), StoreError> {
        run(accessor, move |data, plugin| data.set(plugin, &key, &value)).await
    }

    async fn delete(accessor: &Accessor<Guest, Self>, key: String) -> Result<(), StoreError> {
        run(accessor, move |data, plugin| data.delete(plugin, &key)).await
    }

    async fn keys(
        accessor: &Accessor<Guest, Self>,
        prefix: String,
    ) -> Result<Vec<String>, StoreError> {
        run(accessor, move |data, plugin| data.keys(plugin, &prefix)).await
    }
}

/// Runs `operation` where it may wait for the disk.
async fn run<R: Send + 'static>(
    accessor: &Accessor<Guest, ThisGuest>,
    operation: impl FnOnce(&dyn PluginData, &str) -> Result<R, DataError> + Send + 'static,
) -> Result<R, StoreError> {
    let around = accessor.with(|mut access| Arc::clone(&access.get().around));
    let done =
        tokio::task::spawn_blocking(move || operation(&*around.data, &around.data_owner())).await;
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(DataError::TooLarge(what))) => Err(StoreError::TooLarge(what)),
        Ok(Err(DataError::Other(what))) => Err(StoreError::Other(what)),
        Err(_) => Err(StoreError::Other("the store is shutting down".to_owned())),
    }
}
