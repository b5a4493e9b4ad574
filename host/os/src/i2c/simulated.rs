//! Chips on I2C buses in memory, for tests and for trials of plugins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{BusId, I2cBuses, I2cError, I2cOperation};

/// Chips with 256 one-byte registers, like most sensors and memories: the first byte of a write selects the register,
/// the others are written to it and the following registers, and a read continues from there. Cloning shares them.
#[derive(Clone, Default)]
pub struct SimulatedI2c(Arc<Mutex<BTreeMap<(String, u8), Chip>>>);

struct Chip {
    registers: [u8; 256],
    next: u8,
}

impl Chip {
    fn read(&mut self) -> u8 {
        let byte = self.registers[usize::from(self.next)];
        self.next = self.next.wrapping_add(1);
        byte
    }

    fn write(&mut self, byte: u8) {
        self.registers[usize::from(self.next)] = byte;
        self.next = self.next.wrapping_add(1);
    }
}

impl SimulatedI2c {
    /// Adds a chip whose registers are 0.
    pub fn add(&self, bus: &str, address: u8) {
        let chip = Chip {
            registers: [0; 256],
            next: 0,
        };
        self.0.lock().insert((bus.to_owned(), address), chip);
    }

    /// Sets registers of a chip, beginning with this one. Returns false if there is no such chip.
    #[must_use = "there may be no such chip"]
    pub fn set(&self, bus: &str, address: u8, register: u8, bytes: &[u8]) -> bool {
        let mut chips = self.0.lock();
        let Some(chip) = chips.get_mut(&(bus.to_owned(), address)) else {
            return false;
        };
        chip.next = register;
        bytes.iter().for_each(|byte| chip.write(*byte));
        true
    }

    /// Returns a register of a chip; `None` if there is no such chip.
    #[must_use]
    pub fn register(&self, bus: &str, address: u8, register: u8) -> Option<u8> {
        let chips = self.0.lock();
        let chip = chips.get(&(bus.to_owned(), address))?;
        Some(chip.registers[usize::from(register)])
    }
}

impl I2cBuses for SimulatedI2c {
    fn find(&self, bus: &BusId) -> Result<PathBuf, I2cError> {
        let name = bus.to_string();
        let is_there = self.0.lock().keys().any(|(bus, _)| *bus == name);
        is_there
            .then(|| PathBuf::from(&name))
            .ok_or_else(|| I2cError::NotFound(format!("the device has no I2C bus {name:?}")))
    }

    fn run(&self, bus: &Path, address: u8, operation: &I2cOperation) -> Result<Vec<u8>, I2cError> {
        let name = bus.display().to_string();
        let mut chips = self.0.lock();
        let chip = chips.get_mut(&(name, address)).ok_or_else(|| {
            I2cError::NoAnswer(format!(
                "no chip answers at the address {address:#04x} of the I2C bus `{}`",
                bus.display()
            ))
        })?;
        let mut read = Vec::new();
        match operation {
            I2cOperation::Transfer {
                write,
                read: length,
            } => {
                if let Some((register, bytes)) = write.split_first() {
                    chip.next = *register;
                    bytes.iter().for_each(|byte| chip.write(*byte));
                }
                read.extend((0..*length).map(|_| chip.read()));
            }
            I2cOperation::ReadByte { register } => {
                chip.next = *register;
                read.push(chip.read());
            }
            I2cOperation::ReadWord { register } => {
                chip.next = *register;
                read.extend([chip.read(), chip.read()]);
            }
            I2cOperation::WriteByte { register, value } => {
                chip.next = *register;
                chip.write(*value);
            }
            I2cOperation::WriteWord { register, value } => {
                chip.next = *register;
                value
                    .to_le_bytes()
                    .iter()
                    .for_each(|byte| chip.write(*byte));
            }
        }
        Ok(read)
    }
}
