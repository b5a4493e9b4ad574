//! `wit/store.wit`: a small store of the plugin's own.

use plugin_protocol::{DataError, StoreDelete, StoreGet, StoreKeys, StoreSet};

use crate::bindings::platform::supervisor::store::{self, StoreError};
use crate::guest::{Answer, Guest, GuestAccess, ThisGuest, host};

impl store::Host for &mut Guest {}

impl store::HostWithStore<Guest> for ThisGuest {
    async fn get(access: &GuestAccess, key: String) -> Answer<Option<Vec<u8>>, StoreError> {
        host(access).try_ask(StoreGet { key }).await
    }

    async fn set(access: &GuestAccess, key: String, value: Vec<u8>) -> Answer<(), StoreError> {
        host(access).try_ask(StoreSet { key, value }).await
    }

    async fn delete(access: &GuestAccess, key: String) -> Answer<(), StoreError> {
        host(access).try_ask(StoreDelete { key }).await
    }

    async fn keys(access: &GuestAccess, prefix: String) -> Answer<Vec<String>, StoreError> {
        host(access).try_ask(StoreKeys { prefix }).await
    }
}

mirror! { one way enum DataError, StoreError { TooLarge(what), Other(what) } }
