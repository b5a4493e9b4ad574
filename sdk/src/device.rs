//! What the supervisor knows about its device. Capability `device`.

use serde::de::DeserializeOwned;

use crate::Error;
use crate::bindings::capabilities::platform::supervisor::device as wit;

/// The identity of the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The uuid: 32 lower-case hexadecimal digits.
    pub uuid: String,
    /// The latest name, from the target state; `local` until there is one.
    pub name: String,
    /// The device type, for example `raspberrypi4-64`; `unknown` if the host does not say.
    pub device_type: String,
    /// The processor's architecture, for example `aarch64`; `unknown` if the host does not say.
    pub arch: String,
}

/// Returns the identity of the device.
#[must_use]
pub fn identity() -> Identity {
    wit::identity().into()
}

mirror! { one way struct wit::DeviceIdentity, Identity { uuid, name, device_type, arch } }

/// Reads the device state, the same as in the answer to `GET /v1/device`, for example as a
/// `serde_json::Value`.
///
/// # Errors
/// 500 if the state does not fit `T`.
pub fn state<T: DeserializeOwned>() -> Result<T, Error> {
    serde_json::from_str(&wit::state())
        .map_err(|error| Error::internal(format_args!("failed to read the device state: {error}")))
}
