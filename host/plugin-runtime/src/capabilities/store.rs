//! `wit/store.wit`: the plugin's own small store.

use std::time::Duration;

use plugin_protocol::{DataError, StoreCompareAndSet, StoreDelete, StoreGet, StoreKeys, StoreSet};

use crate::bindings::platform::supervisor::store::{self, StoreError};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl store::Host for &mut Guest {}

impl store::HostWithStore<Guest> for GuestData {
    async fn get(access: &GuestAccess, key: String) -> Answer<Option<Vec<u8>>, StoreError> {
        host(access).try_ask(StoreGet { key }).await
    }

    async fn set(access: &GuestAccess, key: String, value: Vec<u8>) -> Answer<(), StoreError> {
        let lifetime = None;
        let set = StoreSet {
            key,
            value,
            lifetime,
        };
        host(access).try_ask(set).await
    }

    async fn set_for(
        access: &GuestAccess,
        key: String,
        value: Vec<u8>,
        milliseconds: u64,
    ) -> Answer<(), StoreError> {
        let lifetime = Some(Duration::from_millis(milliseconds));
        let set = StoreSet {
            key,
            value,
            lifetime,
        };
        host(access).try_ask(set).await
    }

    async fn compare_and_set(
        access: &GuestAccess,
        key: String,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
        lifetime: Option<u64>,
    ) -> Answer<bool, StoreError> {
        let compare_and_set = StoreCompareAndSet {
            key,
            expected,
            value,
            lifetime: lifetime.map(Duration::from_millis),
        };
        host(access).try_ask(compare_and_set).await
    }

    async fn delete(access: &GuestAccess, key: String) -> Answer<(), StoreError> {
        host(access).try_ask(StoreDelete { key }).await
    }

    async fn keys(access: &GuestAccess, prefix: String) -> Answer<Vec<String>, StoreError> {
        host(access).try_ask(StoreKeys { prefix }).await
    }
}

mirror! { one way enum DataError, StoreError { TooLarge(what), Other(what) } }
