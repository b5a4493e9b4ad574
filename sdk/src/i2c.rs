//! Chips on I2C buses. Capability `i2c`: the policy grants chips to the plugin, under names that the policy chooses.
//!
//! ```no_run
//! # async fn handler() -> Result<(), supervisor_sdk::Error> {
//! use supervisor_sdk::i2c;
//!
//! // The register 0 of an LM75 is the temperature, with the high byte first.
//! let bytes = i2c::write_read("sensor", [0], 2).await?;
//! let configuration = i2c::read_byte("sensor", 1).await?;
//! # Ok(())
//! # }
//! ```

use crate::bindings::capabilities::platform::supervisor::i2c as wit;
use crate::capability_error::capability_error;

/// Writes these bytes (at most 4096), and reads this many (at most 4096) in the same transfer, without a stop in
/// between. Either may be empty, but not both.
///
/// # Errors
/// [`Error`].
pub async fn write_read(
    name: &str,
    bytes: impl Into<Vec<u8>>,
    read_length: u32,
) -> Result<Vec<u8>, Error> {
    Ok(wit::write_read(name.to_owned(), bytes.into(), read_length).await?)
}

/// Reads a register of one byte with the SMBus command for it.
///
/// # Errors
/// [`Error`].
pub async fn read_byte(name: &str, register: u8) -> Result<u8, Error> {
    Ok(wit::read_byte(name.to_owned(), register).await?)
}

/// Reads a register of two bytes with the SMBus command for it: the low byte comes first. If a chip sends the high byte
/// first, use [`u16::swap_bytes`].
///
/// # Errors
/// [`Error`].
pub async fn read_word(name: &str, register: u8) -> Result<u16, Error> {
    Ok(wit::read_word(name.to_owned(), register).await?)
}

/// Writes a register of one byte with the SMBus command for it.
///
/// # Errors
/// [`Error`].
pub async fn write_byte(name: &str, register: u8, value: u8) -> Result<(), Error> {
    Ok(wit::write_byte(name.to_owned(), register, value).await?)
}

/// Writes a register of two bytes with the SMBus command for it: the low byte comes first.
///
/// # Errors
/// [`Error`].
pub async fn write_word(name: &str, register: u8, value: u16) -> Result<(), Error> {
    Ok(wit::write_word(name.to_owned(), register, value).await?)
}

capability_error! {
    /// The reason why nothing was transferred.
    ///
    /// As a [`crate::Error`]: 409 if the chip or the bus is in use, 502 if the device has no such chip, or the chip
    /// does not answer or fails, else 500.
    wit::I2cError {
        /// The policy does not grant this chip.
        NotGranted from NotGranted answers internal,
        /// The device has no such bus.
        NotFound from NotFound answers bad_gateway,
        /// A driver of the kernel uses the chip, or the bus was in use for 5 s.
        Busy from Busy answers conflict,
        /// A length is out of bounds, or the bus does not support such a transfer.
        Invalid from Invalid answers internal,
        /// No chip answers at the address.
        NoAnswer from NoAnswer answers bad_gateway,
        /// The transfer failed.
        Failed from Other answers bad_gateway,
    }
}
