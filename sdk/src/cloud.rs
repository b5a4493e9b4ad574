//! The records that the cloud keeps of this device. Capability `cloud`; the policy names the kinds of records
//! (`records = ["device_tag"]`).

use std::fmt;

use serde::de::DeserializeOwned;

use crate::bindings::capabilities::platform::supervisor::cloud as wit;

/// Requests this device's rows of a kind of record from the cloud, at each call. `fields` are the fields of `T`, by
/// their names in the cloud's data.
///
/// # Errors
/// [`Error`]; [`Error::Unreachable`] also if a row does not fit `T`.
pub async fn records<T: DeserializeOwned>(kind: &str, fields: &[&str]) -> Result<Vec<T>, Error> {
    let names = fields.iter().map(|field| (*field).to_owned()).collect();
    let rows = wit::records(kind.to_owned(), names).await?;
    serde_json::from_str(&rows).map_err(|error| {
        Error::Unreachable(format!(
            "the cloud's `{kind}` has an unexpected form: {error}"
        ))
    })
}

/// Queues values, by name, for the cloud to set when it can be reached. They are on the disk when this returns, and are
/// sent until the cloud accepts them.
///
/// # Errors
/// [`Error`]; nothing is queued then.
pub async fn queue(
    kind: &str,
    values: impl IntoIterator<Item = (String, String)>,
) -> Result<(), Error> {
    let values: Vec<_> = values.into_iter().collect();
    Ok(wit::queue(kind.to_owned(), values).await?)
}

/// The reason why a request to the cloud failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The device has no cloud.
    Unmanaged,
    /// The device has a cloud, but is not registered with it yet.
    Unprovisioned,
    /// The cloud cannot be reached, or refuses the request; the text says why.
    Unreachable(String),
    /// The policy does not grant this kind of record, or the request is not valid.
    Refused(String),
    /// The device failed to store or send the request.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmanaged => f.write_str("this device has no cloud"),
            Self::Unprovisioned => f.write_str("this device is not registered with its cloud"),
            Self::Unreachable(text) | Self::Refused(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<wit::CloudError> for Error {
    fn from(error: wit::CloudError) -> Self {
        match error {
            wit::CloudError::Unmanaged => Self::Unmanaged,
            wit::CloudError::Unprovisioned => Self::Unprovisioned,
            wit::CloudError::Unreachable(text) => Self::Unreachable(text),
            wit::CloudError::Refused(text) => Self::Refused(text),
            wit::CloudError::Other(text) => Self::Failed(text),
        }
    }
}

/// Always 500, the status with which the device API answers if it needs its cloud.
impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        Self::internal(error)
    }
}
