//! I2C buses of the host.
//!
//! [`I2cBuses`] is the only access to buses; [`KernelI2c`] uses the kernel's device files, [`SimulatedI2c`] has chips
//! with registers in memory, for tests and for trials of plugins. Nothing here decides who may talk to which chip: that
//! is up to the plugins' policy. All calls block; on a stuck bus, for as long as the kernel's driver waits.

mod kernel;
mod simulated;

use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use kernel::KernelI2c;
pub use simulated::SimulatedI2c;

/// A bus.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, derive_more::Display)]
#[serde(untagged)]
pub enum BusId {
    /// By its number: 1 is `/dev/i2c-1`.
    Number(u32),
    /// By the path of its device file, or the name of its adapter, such as `bcm2835 (i2c@7e804000)`.
    Name(String),
}

/// An operation on a chip on a bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum I2cOperation {
    /// Writes, and then reads in the same transfer, without a stop in between. Either part may be empty.
    Transfer {
        /// The bytes to write.
        write: Vec<u8>,
        /// How many bytes are read.
        read: u16,
    },
    /// Reads a one-byte register, with the SMBus command for it.
    ReadByte {
        /// The register.
        register: u8,
    },
    /// Reads a two-byte register; the low byte comes first.
    ReadWord {
        /// The register.
        register: u8,
    },
    /// Writes a one-byte register.
    WriteByte {
        /// The register.
        register: u8,
        /// The new value.
        value: u8,
    },
    /// Writes a two-byte register; the low byte is sent first.
    WriteWord {
        /// The register.
        register: u8,
        /// The new value.
        value: u16,
    },
}

/// Why nothing was transferred.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum I2cError {
    /// There is no such bus.
    #[error("{0}")]
    NotFound(String),
    /// A kernel driver uses the chip.
    #[error("{0}")]
    Busy(String),
    /// The bus does not support such a transfer.
    #[error("{0}")]
    Unsupported(String),
    /// No chip answers at this address.
    #[error("{0}")]
    NoAnswer(String),
    /// The transfer failed.
    #[error("{0}")]
    Failed(String),
}

/// The buses of the host.
pub trait I2cBuses: Send + Sync + 'static {
    /// Returns the device file of a bus: the same for all names of one bus. Blocks.
    ///
    /// # Errors
    /// [`I2cError::NotFound`], also if the file is not the device file of a bus.
    fn find(&self, bus: &BusId) -> Result<PathBuf, I2cError>;

    /// Runs an operation on the chip at this 7-bit address, and returns the bytes read. Blocks.
    ///
    /// # Errors
    /// [`I2cError`].
    fn run(&self, bus: &Path, address: u8, operation: &I2cOperation) -> Result<Vec<u8>, I2cError>;
}
