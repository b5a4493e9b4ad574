//! The LEDs of the device, by their names in the kernel's LED class. Capability `led`; the device's policy may
//! limit it to named LEDs.

use crate::bindings::capabilities::platform::supervisor::led as wit;
use crate::capability_error::capability_error;

/// Lists the names of the LEDs that exist and are granted, sorted. An empty list is not an error.
///
/// # Errors
/// [`Error::Failed`] if the host cannot list them.
pub fn names() -> Result<Vec<String>, Error> {
    Ok(wit::names()?)
}

/// An LED that this call holds. When it is dropped, and at any other end of the call, the LED shows again what it
/// showed before.
#[derive(Debug)]
pub struct Light(wit::Light);

impl Light {
    /// Takes over the LED from its kernel trigger.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Busy`], or [`Error::Failed`] if it cannot be written.
    pub fn open(name: &str) -> Result<Self, Error> {
        Ok(Self(wit::Light::open(name)?))
    }

    /// Returns the highest value for [`Light::set`].
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
    /// Those of [`Light::set`].
    pub fn on(&self) -> Result<(), Error> {
        self.set(u32::MAX)
    }

    /// Switches the LED off.
    ///
    /// # Errors
    /// Those of [`Light::set`].
    pub fn off(&self) -> Result<(), Error> {
        self.set(0)
    }
}

capability_error! {
    /// The reason why an LED was refused.
    ///
    /// As a [`crate::Error`]: 404, 409 or 500.
    wit::LedError {
        /// The device has no such LED, or the policy does not grant it.
        NotFound from NotFound answers not_found,
        /// Another call holds it.
        Busy from Busy answers conflict,
        /// The LED could not be read or written.
        Failed from Other answers internal,
    }
}
