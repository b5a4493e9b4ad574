//! The LEDs of the device, by their names in the kernel's LED class. Capability `led`; the device's
//! policy may narrow it to named LEDs.

use std::fmt;

use crate::bindings::capabilities::platform::supervisor::led as wit;

/// Lists the names of the LEDs that exist and are granted, sorted. An empty list is not an error.
///
/// # Errors
/// [`Error::Failed`] if the host cannot list them.
pub fn names() -> Result<Vec<String>, Error> {
    Ok(wit::names()?)
}

/// An LED that this call holds. Dropping it, and every other end of the call, restores what the LED showed before.
#[derive(Debug)]
pub struct Light(wit::Light);

impl Light {
    /// Takes the LED from its kernel trigger.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Busy`], or [`Error::Failed`] if it cannot be written.
    pub fn open(name: &str) -> Result<Self, Error> {
        Ok(Self(wit::Light::open(name)?))
    }

    /// The highest value for [`Light::set`].
    #[must_use]
    pub fn max(&self) -> u32 {
        self.0.max()
    }

    /// Sets the brightness; values above [`Light::max`] count as the maximum.
    ///
    /// # Errors
    /// [`Error::Failed`] if the LED cannot be written.
    pub fn set(&self, brightness: u32) -> Result<(), Error> {
        Ok(self.0.set(brightness)?)
    }

    /// Sets full brightness.
    ///
    /// # Errors
    /// As [`Light::set`].
    pub fn on(&self) -> Result<(), Error> {
        self.set(u32::MAX)
    }

    /// Switches the LED off.
    ///
    /// # Errors
    /// As [`Light::set`].
    pub fn off(&self) -> Result<(), Error> {
        self.set(0)
    }
}

/// Why an LED was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The device has no such LED, or the policy does not grant it.
    NotFound(String),
    /// Another call holds it.
    Busy(String),
    /// The LED could not be read or written.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(text) | Self::Busy(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<wit::LedError> for Error {
    fn from(error: wit::LedError) -> Self {
        match error {
            wit::LedError::NotFound(text) => Self::NotFound(text),
            wit::LedError::Busy(text) => Self::Busy(text),
            wit::LedError::Other(text) => Self::Failed(text),
        }
    }
}

/// 404, 409 or 500.
impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(text) => Self::not_found(text),
            Error::Busy(text) => Self::conflict(text),
            Error::Failed(text) => Self::internal(text),
        }
    }
}
