//! Serial ports. Capability `serial`: the policy names the ports that the plugin may open.
//!
//! ```no_run
//! # async fn handler() -> Result<(), supervisor_sdk::Error> {
//! use std::time::Duration;
//! use supervisor_sdk::serial::{Port, Settings};
//!
//! let port = Port::open("/dev/ttyUSB0", Settings::baud(9600)).await?;
//! port.write(b"READ\r\n").await?;
//! let answer = port.read_until(b'\n', Duration::from_secs(2)).await?;
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use crate::bindings::capabilities::platform::supervisor::serial as wit;
use crate::capability_error::capability_error;

/// The most that [`Port::read_until`] collects, in bytes.
const LONGEST_LINE: usize = 64 << 10;
/// How much is requested at a time.
const PIECE: u32 = 4096;

/// The settings of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Bits per second, from 50 to 4,000,000.
    pub baud: u32,
    /// 5 to 8.
    pub data_bits: u8,
    /// The parity bit.
    pub parity: Parity,
    /// 1 or 2.
    pub stop_bits: u8,
}

/// The parity bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Parity {
    None,
    Even,
    Odd,
}

impl Settings {
    /// Returns this rate with 8 data bits, no parity and 1 stop bit.
    #[must_use]
    pub fn baud(baud: u32) -> Settings {
        Settings {
            baud,
            data_bits: 8,
            parity: Parity::None,
            stop_bits: 1,
        }
    }
}

/// A port that this call holds: nobody else can open it until it is dropped, or the call ends.
#[derive(Debug)]
pub struct Port(wit::Port);

impl Port {
    /// Opens a port by its name in the policy, raw and without flow control. Earlier input is discarded.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn open(name: &str, settings: Settings) -> Result<Port, Error> {
        let port = wit::Port::open(name.to_owned(), settings.into()).await?;
        Ok(Port(port))
    }

    /// Waits until something has been received, and returns it, at most `most` bytes (up to 65,536). Returns nothing
    /// once `within` has passed (60 s at most).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn read(&self, most: u32, within: Duration) -> Result<Vec<u8>, Error> {
        let milliseconds = u32::try_from(within.as_millis()).unwrap_or(u32::MAX);
        Ok(self.0.read(most, milliseconds).await?)
    }

    /// Reads until this byte has been received, which is the last one returned. Bytes after it in the same piece are
    /// discarded. Waits `within` for each piece (60 s at most).
    ///
    /// # Errors
    /// [`Error::Failed`] if nothing has been received for that long, or 64 KiB without that byte.
    pub async fn read_until(&self, end: u8, within: Duration) -> Result<Vec<u8>, Error> {
        let mut line = Vec::new();
        loop {
            let piece = self.read(PIECE, within).await?;
            if piece.is_empty() {
                return Err(Error::Failed(format!(
                    "the device did not finish its answer within {} ms",
                    within.as_millis()
                )));
            }
            if let Some(position) = piece.iter().position(|byte| *byte == end) {
                line.extend_from_slice(&piece[..=position]);
                return Ok(line);
            }
            line.extend_from_slice(&piece);
            if line.len() > LONGEST_LINE {
                let message = "the device sent 64 KiB without an end of the line";
                return Err(Error::Failed(message.to_owned()));
            }
        }
    }

    /// Writes all of it, at most 64 KiB. Returns once the kernel has it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn write(&self, bytes: impl Into<Vec<u8>>) -> Result<(), Error> {
        Ok(self.0.write(bytes.into()).await?)
    }
}

mirror! { one way struct Settings, wit::Settings { baud, data_bits, parity, stop_bits } }
mirror! { one way enum Parity, wit::Parity { None, Even, Odd } }

capability_error! {
    /// The reason why a port was not opened, read or written.
    ///
    /// As a [`crate::Error`]: 409 if another call holds the port, 502 if the device has no such port or it fails, else
    /// 500.
    wit::SerialError {
        /// The policy does not grant this port.
        NotGranted from NotGranted answers internal,
        /// The device has no such port, or nothing is connected to it.
        NotFound from NotFound answers bad_gateway,
        /// Another call holds the port.
        Busy from Busy answers conflict,
        /// The port does not support the settings, or a length is out of bounds.
        Invalid from Invalid answers internal,
        /// The port could not be read or written.
        Failed from Other answers bad_gateway,
    }
}
