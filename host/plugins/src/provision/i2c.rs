//! The chips on I2C buses that the policy names.

use std::sync::Arc;
use std::time::Duration;

use os::I2cOperation;
use plugin_protocol::I2C_BYTES;
use plugin_protocol::text::{cut, one_line};
use plugin_protocol::wit::i2c::{Host, I2cError};
use tokio::time::timeout;

use super::InstanceCall;
use crate::i2c_grants::I2cGrant;

/// How long a transfer may take, including the wait for the bus.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// How much is shown of a name that is not in the policy, in bytes.
const SHOWN_NAME: usize = 64;

impl InstanceCall<'_> {
    /// Returns the chip with the plugin's name for it.
    fn chip(&self, name: &str) -> Result<&I2cGrant, I2cError> {
        let chip = self.plugin.grants.i2c.chip(name);
        chip.ok_or_else(|| {
            I2cError::NotGranted(format!(
                "the policy does not name the chip `{}` in `i2c` of the plugin `{}`",
                one_line(name, SHOWN_NAME),
                self.plugin.name
            ))
        })
    }

    /// Performs a transfer, and returns the bytes that were read.
    async fn transfer(
        &self,
        chip: &I2cGrant,
        operation: I2cOperation,
    ) -> Result<Vec<u8>, I2cError> {
        let plugin = self.plugin;
        let transferring = async {
            let (buses, bus) = (Arc::clone(&plugin.services.i2c), chip.bus.clone());
            let find = move || buses.find(&bus);
            let bus = plugin
                .share
                .jobs
                .run_on_hardware(find)
                .await
                .ok_or_else(stopping)?;
            let bus = bus.map_err(protocol_error)?;
            let turn = plugin
                .hardware
                .i2c_turns
                .for_bus(bus.clone())
                .acquire_owned()
                .await;
            let turn = turn.map_err(|_| stopping())?;
            let (buses, address) = (Arc::clone(&plugin.services.i2c), chip.address);
            let run = move || {
                // Others get their turn once the kernel has returned, even if this call ends before.
                let _turn = turn;
                buses.run(&bus, address, &operation)
            };
            let done = plugin
                .share
                .jobs
                .run_on_hardware(run)
                .await
                .ok_or_else(stopping)?;
            done.map_err(protocol_error)
        };
        match timeout(ANSWERED_WITHIN, transferring).await {
            Ok(done) => done,
            Err(_) => Err(I2cError::Busy(format!(
                "the I2C bus of the chip `{}` did not answer within {} s",
                chip.name,
                ANSWERED_WITHIN.as_secs()
            ))),
        }
    }
}

impl Host for InstanceCall<'_> {
    async fn write_read(
        &self,
        name: String,
        bytes: Vec<u8>,
        read_length: u32,
    ) -> Result<Vec<u8>, I2cError> {
        let chip = self.chip(&name)?;
        let transfer = checked_transfer(bytes, read_length)?;
        self.transfer(chip, transfer).await
    }

    async fn read_byte(&self, name: String, register: u8) -> Result<u8, I2cError> {
        let read = I2cOperation::ReadByte { register };
        match self.transfer(self.chip(&name)?, read).await?[..] {
            [byte] => Ok(byte),
            ref bytes => Err(unexpected(bytes)),
        }
    }

    async fn read_word(&self, name: String, register: u8) -> Result<u16, I2cError> {
        let read = I2cOperation::ReadWord { register };
        match self.transfer(self.chip(&name)?, read).await?[..] {
            [low, high] => Ok(u16::from_le_bytes([low, high])),
            ref bytes => Err(unexpected(bytes)),
        }
    }

    async fn write_byte(&self, name: String, register: u8, value: u8) -> Result<(), I2cError> {
        let write = I2cOperation::WriteByte { register, value };
        self.transfer(self.chip(&name)?, write).await.map(drop)
    }

    async fn write_word(&self, name: String, register: u8, value: u16) -> Result<(), I2cError> {
        let write = I2cOperation::WriteWord { register, value };
        self.transfer(self.chip(&name)?, write).await.map(drop)
    }
}

/// Returns a valid transfer. Its lengths come from a plugin's instance, so they are checked again.
fn checked_transfer(bytes: Vec<u8>, read_length: u32) -> Result<I2cOperation, I2cError> {
    let read = usize::try_from(read_length).unwrap_or(usize::MAX);
    if bytes.len() > I2C_BYTES || read > I2C_BYTES {
        return Err(I2cError::Invalid(format!(
            "a transfer writes and reads at most {I2C_BYTES} bytes, not {} and {read}",
            bytes.len()
        )));
    }
    if bytes.is_empty() && read == 0 {
        return Err(I2cError::Invalid(
            "a transfer writes or reads at least one byte".to_owned(),
        ));
    }
    Ok(I2cOperation::Transfer {
        write: bytes,
        read: u16::try_from(read).unwrap_or(u16::MAX),
    })
}

fn unexpected(bytes: &[u8]) -> I2cError {
    I2cError::Other(format!("{} bytes were read", bytes.len()))
}

fn stopping() -> I2cError {
    I2cError::Other("the supervisor is stopping".to_owned())
}

fn protocol_error(error: os::I2cError) -> I2cError {
    match error {
        os::I2cError::NotFound(why) => I2cError::NotFound(cut(why)),
        os::I2cError::Busy(why) => I2cError::Busy(cut(why)),
        os::I2cError::Unsupported(why) => I2cError::Invalid(cut(why)),
        os::I2cError::NoAnswer(why) => I2cError::NoAnswer(cut(why)),
        os::I2cError::Failed(why) => I2cError::Other(cut(why)),
    }
}
