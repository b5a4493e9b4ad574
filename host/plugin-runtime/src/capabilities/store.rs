//! `wit/store.wit`: a small store of the plugin's own.

use plugin_protocol::{DataError, StoreDelete, StoreGet, StoreKeys, StoreSet};
use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::store::{self, StoreError};
use crate::guest::{Guest, ThisGuest, host};

impl store::Host for &mut Guest {}

impl store::HostWithStore<Guest> for ThisGuest {
    async fn get(
        accessor: &Accessor<Guest, Self>,
        key: String,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, StoreError>> {
        let answer = host(accessor).ask(StoreGet { key }).await?;
        Ok(answer.map_err(Into::into))
    }

    async fn set(
        accessor: &Accessor<Guest, Self>,
        key: String,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<(), StoreError>> {
        let answer = host(accessor).ask(StoreSet { key, value }).await?;
        Ok(answer.map_err(Into::into))
    }

    async fn delete(
        accessor: &Accessor<Guest, Self>,
        key: String,
    ) -> wasmtime::Result<Result<(), StoreError>> {
        let answer = host(accessor).ask(StoreDelete { key }).await?;
        Ok(answer.map_err(Into::into))
    }

    async fn keys(
        accessor: &Accessor<Guest, Self>,
        prefix: String,
    ) -> wasmtime::Result<Result<Vec<String>, StoreError>> {
        let answer = host(accessor).ask(StoreKeys { prefix }).await?;
        Ok(answer.map_err(Into::into))
    }
}

impl From<DataError> for StoreError {
    fn from(error: DataError) -> StoreError {
        match error {
            DataError::TooLarge(what) => StoreError::TooLarge(what),
            DataError::Other(what) => StoreError::Other(what),
        }
    }
}
