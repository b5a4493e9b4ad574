//! The host's name. Capability `host_name`.

use crate::bindings::capabilities::platform::supervisor::host_name as wit;
use crate::capability_error::capability_error;

/// Reads the name that the host has at startup, from its `/etc/hostname`; `None` if that is empty.
///
/// # Errors
/// [`Error::Failed`] if it cannot be read.
pub async fn get() -> Result<Option<String>, Error> {
    Ok(wit::get().await?)
}

/// Renames the host, at once and for later boots, also in the device's `config.json`.
///
/// # Errors
/// [`Error::Invalid`] if it is not a valid host name; then nothing has changed.
pub async fn set(name: &str) -> Result<(), Error> {
    Ok(wit::set(name.to_owned()).await?)
}

capability_error! {
    /// The reason why the name was not read or set.
    ///
    /// As a [`crate::Error`]: 400 or 500.
    wit::HostNameError {
        /// The name is not a valid host name.
        Invalid from Invalid answers bad_request,
        /// The name could not be read or set.
        Failed from Other answers internal,
    }
}
