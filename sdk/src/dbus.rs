//! Methods of services on the host's system bus. Capability `dbus`: the policy names the services, objects and methods
//! that the plugin may call; the device calls them as root.
//!
//! ```no_run
//! # async fn handler() -> Result<(), supervisor_sdk::Error> {
//! use supervisor_sdk::dbus::{MethodCall, Variant};
//!
//! let name: (Variant<String>,) = MethodCall::new(
//!     "org.freedesktop.hostname1",
//!     "/org/freedesktop/hostname1",
//!     "org.freedesktop.DBus.Properties",
//!     "Get",
//! )
//! .arguments("ss", &("org.freedesktop.hostname1", "Hostname"))?
//! .send()
//! .await?;
//! let name = name.0.data;
//! # Ok(())
//! # }
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bindings::capabilities::platform::supervisor::dbus as wit;

/// A call that has not been made yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodCall {
    service: String,
    path: String,
    interface: String,
    member: String,
    signature: String,
    arguments: String,
}

/// A value of any type, together with its type: `{"type": "s", "data": "kitchen"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant<T> {
    /// The signature of `data`.
    #[serde(rename = "type")]
    pub signature: String,
    /// The value.
    pub data: T,
}

impl<T> Variant<T> {
    /// Creates a value of the type with this signature.
    pub fn new(signature: impl Into<String>, data: T) -> Variant<T> {
        Variant {
            signature: signature.into(),
            data,
        }
    }
}

impl MethodCall {
    /// Creates a call without arguments.
    #[must_use]
    pub fn new(service: &str, path: &str, interface: &str, member: &str) -> MethodCall {
        MethodCall {
            service: service.to_owned(),
            path: path.to_owned(),
            interface: interface.to_owned(),
            member: member.to_owned(),
            signature: String::new(),
            arguments: "[]".to_owned(),
        }
    }

    /// Sets the arguments: a value that serde writes as an array with one element for each type of the signature, such
    /// as a tuple. Use [`Variant`] for a variant, a tuple for a structure, and a map for a dictionary whose keys are
    /// texts.
    ///
    /// # Errors
    /// 500 if they cannot be written as JSON.
    pub fn arguments(
        mut self,
        signature: &str,
        arguments: &impl Serialize,
    ) -> Result<MethodCall, crate::Error> {
        self.arguments = serde_json::to_string(arguments).map_err(crate::Error::internal)?;
        signature.clone_into(&mut self.signature);
        Ok(self)
    }

    /// Makes the call, and reads the values of the answer, for example into a tuple. If the answer is a single
    /// structure, its members are read.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Unreadable`] also if the answer does not fit `T`.
    pub async fn send<T: DeserializeOwned>(self) -> Result<T, Error> {
        let answer = wit::call(self.into()).await?;
        serde_json::from_str(&answer)
            .map_err(|error| Error::Unreadable(format!("an unexpected answer: {error}")))
    }
}

impl From<MethodCall> for wit::MethodCall {
    fn from(call: MethodCall) -> Self {
        wit::MethodCall {
            service: call.service,
            path: call.path,
            interface: call.interface,
            member: call.member,
            signature: call.signature,
            arguments: call.arguments,
        }
    }
}

/// The reason why a method was not called, or did not answer.
///
/// As a [`crate::Error`]: 502 if the service or the bus is the reason, else 500.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The policy does not grant this method.
    NotGranted(String),
    /// The call is not valid.
    Invalid(String),
    /// The service answered with an error.
    Refused {
        /// The error's name, such as `org.freedesktop.DBus.Error.UnknownMethod`.
        name: String,
        /// The text that came with it.
        message: String,
    },
    /// The bus or the service does not answer.
    Unreachable(String),
    /// The answer is too long, or not what was expected.
    Unreadable(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::NotGranted(message)
            | Error::Invalid(message)
            | Error::Unreachable(message)
            | Error::Unreadable(message) => f.write_str(message),
            Error::Refused { name, message } => write!(f, "{message} ({name})"),
        }
    }
}

impl std::error::Error for Error {}

impl From<wit::DbusError> for Error {
    fn from(error: wit::DbusError) -> Self {
        match error {
            wit::DbusError::NotGranted(message) => Error::NotGranted(message),
            wit::DbusError::Invalid(message) => Error::Invalid(message),
            wit::DbusError::Refused(wit::Refusal { name, message }) => {
                Error::Refused { name, message }
            }
            wit::DbusError::Unreachable(message) => Error::Unreachable(message),
            wit::DbusError::Unreadable(message) => Error::Unreadable(message),
        }
    }
}

impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotGranted(_) | Error::Invalid(_) => crate::Error::internal(error),
            Error::Refused { .. } | Error::Unreachable(_) | Error::Unreadable(_) => {
                crate::Error::bad_gateway(error)
            }
        }
    }
}
