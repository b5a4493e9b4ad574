//! A small store of the plugin's own that outlives its instances and restarts of the supervisor.
//! Capability `store`.
//!
//! Keys are at most 256 bytes, values at most 64 KiB, all of them together at most 1 MiB and 10,000 keys
//! for one plugin.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::capabilities::platform::supervisor::store as wit;
use crate::capability_error::capability_error;

/// Reads the value of `key`, if there is one.
///
/// # Errors
/// [`Error::Failed`] if the store cannot be read.
pub async fn get(key: &str) -> Result<Option<Vec<u8>>, Error> {
    Ok(wit::get(key.to_owned()).await?)
}

/// Sets `key`, replacing its previous value. The write has reached the disk when this returns.
///
/// # Errors
/// [`Error::TooLarge`] if a limit is passed, [`Error::Failed`] if the store cannot be written.
pub async fn set(key: &str, value: impl Into<Vec<u8>>) -> Result<(), Error> {
    Ok(wit::set(key.to_owned(), value.into()).await?)
}

/// Removes `key`; a missing key is not an error.
///
/// # Errors
/// [`Error::Failed`] if the store cannot be written.
pub async fn delete(key: &str) -> Result<(), Error> {
    Ok(wit::delete(key.to_owned()).await?)
}

/// Lists the keys that begin with `prefix`, sorted.
///
/// # Errors
/// [`Error::Failed`] if the store cannot be read.
pub async fn keys(prefix: &str) -> Result<Vec<String>, Error> {
    Ok(wit::keys(prefix.to_owned()).await?)
}

/// Reads the value of `key` that [`set_json`] wrote.
///
/// # Errors
/// As [`get`]; [`Error::Failed`] also if the value does not fit `T`.
pub async fn get_json<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    let Some(bytes) = get(key).await? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        Error::Failed(format!(
            "the value of `{key}` has an unexpected form: {error}"
        ))
    })
}

/// Sets `key` to a value in JSON.
///
/// # Errors
/// As [`set`]; [`Error::Failed`] also if the value cannot be written as JSON.
pub async fn set_json<T: Serialize>(key: &str, value: &T) -> Result<(), Error> {
    let bytes = serde_json::to_vec(value)
        .map_err(|error| Error::Failed(format!("failed to write `{key}` as JSON: {error}")))?;
    set(key, bytes).await
}

capability_error! {
    /// Why a request to the store failed.
    ///
    /// As a [`crate::Error`]: 413 if a limit is passed, else 500.
    wit::StoreError {
        /// A key, a value, their total size or their number exceeds its limit; the text says which.
        TooLarge from TooLarge answers too_large,
        /// The store could not be read or written.
        Failed from Other answers internal,
    }
}
