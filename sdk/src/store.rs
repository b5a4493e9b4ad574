//! The plugin's own small store, which outlives its instances and restarts of the supervisor. Capability `store`.
//!
//! A key has at most 256 bytes, a value at most 64 KiB; all of a plugin's keys and values together have at most 1
//! MiB, and there are at most 10,000 keys.

use std::time::Duration;

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
/// [`Error::TooLarge`] if a limit is exceeded, [`Error::Failed`] if the store cannot be written.
pub async fn set(key: &str, value: impl Into<Vec<u8>>) -> Result<(), Error> {
    Ok(wit::set(key.to_owned(), value.into()).await?)
}

/// Sets `key` as [`set`] does, for a time by the device's clock, to the millisecond: after that, the key counts as
/// removed.
///
/// # Errors
/// Those of [`set`].
pub async fn set_for(
    key: &str,
    value: impl Into<Vec<u8>>,
    lifetime: Duration,
) -> Result<(), Error> {
    Ok(wit::set_for(key.to_owned(), value.into(), milliseconds(lifetime)).await?)
}

/// Sets `key` to `value`, or removes it if that is `None`, but only if the key has the expected value (`None`: no
/// value). Returns whether it did; if not, nothing has changed. With a lifetime, the value expires like that of
/// [`set_for`]. [`update`] repeats this until it succeeds.
///
/// # Errors
/// Those of [`set`].
pub async fn compare_and_set(
    key: &str,
    expected: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    lifetime: Option<Duration>,
) -> Result<bool, Error> {
    let lifetime = lifetime.map(milliseconds);
    Ok(wit::compare_and_set(key.to_owned(), expected, value, lifetime).await?)
}

/// Changes the value of `key` without losing changes that other calls make at the same time: `change` gets the value,
/// and returns the new one; `None` stands for a missing key. It is called again if the value has changed in the
/// meantime. Returns the value that was set.
///
/// ```no_run
/// # async fn count() -> Result<(), supervisor_sdk::store::Error> {
/// use supervisor_sdk::store;
///
/// let count = store::update("count", |count| {
///     let count = count.and_then(|text| String::from_utf8(text).ok()?.parse::<u64>().ok());
///     Some((count.unwrap_or(0) + 1).to_string().into_bytes())
/// })
/// .await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`get`] and [`set`].
pub async fn update(
    key: &str,
    mut change: impl FnMut(Option<Vec<u8>>) -> Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, Error> {
    loop {
        let before = get(key).await?;
        let after = change(before.clone());
        if compare_and_set(key, before, after.clone(), None).await? {
            return Ok(after);
        }
    }
}

fn milliseconds(lifetime: Duration) -> u64 {
    u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX)
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
/// Those of [`get`]; [`Error::Failed`] also if the value does not fit `T`.
pub async fn get_json<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    let bytes = get(key).await?;
    bytes.map(|bytes| from_json(key, &bytes)).transpose()
}

/// Sets `key` to a value in JSON.
///
/// # Errors
/// Those of [`set`]; [`Error::Failed`] also if the value cannot be written as JSON.
pub async fn set_json<T: Serialize>(key: &str, value: &T) -> Result<(), Error> {
    set(key, to_json(key, value)?).await
}

/// Like [`update`], with values in JSON: `change` gets the value if there is one, and returns the new one, which this
/// function returns, too.
///
/// ```no_run
/// # async fn count() -> Result<(), supervisor_sdk::store::Error> {
/// use supervisor_sdk::store;
///
/// let count = store::update_json("count", |count: Option<u64>| count.unwrap_or(0) + 1).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`get_json`] and [`set_json`].
pub async fn update_json<T: DeserializeOwned + Serialize>(
    key: &str,
    mut change: impl FnMut(Option<T>) -> T,
) -> Result<T, Error> {
    loop {
        let before = get(key).await?;
        let value = before.as_deref().map(|bytes| from_json(key, bytes));
        let after = change(value.transpose()?);
        let bytes = to_json(key, &after)?;
        if compare_and_set(key, before, Some(bytes), None).await? {
            return Ok(after);
        }
    }
}

fn from_json<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::Failed(format!(
            "the value of `{key}` has an unexpected form: {error}"
        ))
    })
}

fn to_json<T: Serialize>(key: &str, value: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value)
        .map_err(|error| Error::Failed(format!("failed to write `{key}` as JSON: {error}")))
}

capability_error! {
    /// The reason why a request to the store failed.
    ///
    /// As a [`crate::Error`]: 413 if a limit is exceeded, else 500.
    wit::StoreError {
        /// A key, a value, their total size or their number exceeds its limit; the text says which.
        TooLarge from TooLarge answers too_large,
        /// The store could not be read or written.
        Failed from Other answers internal,
    }
}
