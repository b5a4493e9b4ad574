//! The host's name. Capability `host_name`.

use std::fmt;

use crate::bindings::capabilities::platform::supervisor::host_name as wit;

/// Reads the name with which the host starts, from its `/etc/hostname`; `None` if that is empty.
///
/// # Errors
/// [`Error::Failed`] if it cannot be read.
pub async fn get() -> Result<Option<String>, Error> {
    Ok(wit::get().await?)
}

/// Renames the host, now and after a reboot, also in the device's `config.json`.
///
/// # Errors
/// [`Error::Invalid`] if it is not a valid host name; then nothing was changed.
pub async fn set(name: &str) -> Result<(), Error> {
    Ok(wit::set(name.to_owned()).await?)
}

/// Why the name was not read or set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The name is not a valid host name.
    Invalid(String),
    /// The name could not be read or set.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<wit::HostNameError> for Error {
    fn from(error: wit::HostNameError) -> Self {
        match error {
            wit::HostNameError::Invalid(text) => Self::Invalid(text),
            wit::HostNameError::Other(text) => Self::Failed(text),
        }
    }
}

/// 400 or 500.
impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(text) => Self::bad_request(text),
            Error::Failed(text) => Self::internal(text),
        }
    }
}
