//! `wit/i2c.wit`: the chips on I2C buses that the policy names.

use plugin_protocol::{HARDWARE_NAME, I2C_BYTES, I2cOperation, I2cTransfer};

use crate::bindings::platform::supervisor::i2c::{self, I2cError};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl i2c::Host for &mut Guest {}

impl i2c::HostWithStore<Guest> for GuestData {
    async fn write_read(
        access: &GuestAccess,
        name: String,
        bytes: Vec<u8>,
        read_length: u32,
    ) -> Answer<Vec<u8>, I2cError> {
        // A longer transfer does not fit into a message to the host.
        if bytes.len() > I2C_BYTES {
            let length = bytes.len();
            let why = format!("a transfer writes at most {I2C_BYTES} bytes, not {length}");
            return Ok(Err(I2cError::Invalid(why)));
        }
        transfer(access, name, I2cOperation::WriteRead { bytes, read_length }).await
    }

    async fn read_byte(access: &GuestAccess, name: String, register: u8) -> Answer<u8, I2cError> {
        let read = transfer(access, name, I2cOperation::ReadByte { register }).await?;
        Ok(read.and_then(|bytes| match bytes[..] {
            [byte] => Ok(byte),
            _ => Err(unexpected(&bytes)),
        }))
    }

    async fn read_word(access: &GuestAccess, name: String, register: u8) -> Answer<u16, I2cError> {
        let read = transfer(access, name, I2cOperation::ReadWord { register }).await?;
        Ok(read.and_then(|bytes| match bytes[..] {
            [low, high] => Ok(u16::from_le_bytes([low, high])),
            _ => Err(unexpected(&bytes)),
        }))
    }

    async fn write_byte(
        access: &GuestAccess,
        name: String,
        register: u8,
        value: u8,
    ) -> Answer<(), I2cError> {
        let written = transfer(access, name, I2cOperation::WriteByte { register, value }).await?;
        Ok(written.map(drop))
    }

    async fn write_word(
        access: &GuestAccess,
        name: String,
        register: u8,
        value: u16,
    ) -> Answer<(), I2cError> {
        let written = transfer(access, name, I2cOperation::WriteWord { register, value }).await?;
        Ok(written.map(drop))
    }
}

async fn transfer(
    access: &GuestAccess,
    name: String,
    operation: I2cOperation,
) -> Answer<Vec<u8>, I2cError> {
    if name.len() > HARDWARE_NAME {
        let why = format!("no chip has a name of more than {HARDWARE_NAME} bytes");
        return Ok(Err(I2cError::NotGranted(why)));
    }
    host(access).try_ask(I2cTransfer { name, operation }).await
}

fn unexpected(bytes: &[u8]) -> I2cError {
    I2cError::Other(format!("{} bytes were read", bytes.len()))
}

mirror! { one way enum plugin_protocol::I2cError, I2cError { NotGranted(why), NotFound(why), Busy(why), Invalid(why), NoAnswer(why), Other(why) } }
