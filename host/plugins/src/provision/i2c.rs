//! The chips on I2C buses that the policy names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plugin_protocol::{I2C_BYTES, I2cError, I2cOperation, I2cTransfer};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::blocking::blocking_on_hardware;
use crate::plugin_context::PluginContext;
use crate::text::{cut, one_line};

/// How long a transfer may take, including the wait for the bus.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// How much is shown of a name that is not in the policy, in bytes.
const SHOWN_NAME: usize = 64;

/// The turns on each bus, by its device file. There is one entry for each bus of the board.
#[derive(Default)]
pub(crate) struct I2cTurns(Mutex<BTreeMap<PathBuf, Arc<Semaphore>>>);

impl I2cTurns {
    fn for_bus(&self, bus: PathBuf) -> Arc<Semaphore> {
        let mut turns = self.0.lock();
        let turn = turns.entry(bus);
        Arc::clone(turn.or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

impl PluginContext {
    pub(super) async fn transfer(
        &self,
        I2cTransfer { name, operation }: I2cTransfer,
    ) -> Result<Vec<u8>, I2cError> {
        let Some(chip) = self.grants.i2c.chip(&name) else {
            return Err(I2cError::NotGranted(format!(
                "the policy does not name the chip `{}` in `i2c` of the plugin `{}`",
                one_line(&name, SHOWN_NAME),
                self.name
            )));
        };
        let operation = checked(operation)?;
        let transferring = async {
            let (buses, bus) = (Arc::clone(&self.services.i2c), chip.bus.clone());
            let find = move || buses.find(&bus);
            let bus = blocking_on_hardware(find).await.ok_or_else(stopping)?;
            let bus = bus.map_err(protocol_error)?;
            let turn = self
                .hardware
                .i2c_turns
                .for_bus(bus.clone())
                .acquire_owned()
                .await;
            let turn = turn.map_err(|_| stopping())?;
            let (buses, address) = (Arc::clone(&self.services.i2c), chip.address);
            let run = move || {
                // Others get their turn once the kernel has returned, even if this call ends before.
                let _turn = turn;
                buses.run(&bus, address, &operation)
            };
            let done = blocking_on_hardware(run).await.ok_or_else(stopping)?;
            done.map_err(protocol_error)
        };
        match timeout(ANSWERED_WITHIN, transferring).await {
            Ok(done) => done,
            Err(_) => Err(I2cError::Busy(format!(
                "the I2C bus of the chip `{name}` did not answer within {} s",
                ANSWERED_WITHIN.as_secs()
            ))),
        }
    }
}

/// Converts a valid operation. It comes from a plugin's instance, so lengths are checked again.
fn checked(operation: I2cOperation) -> Result<os::I2cOperation, I2cError> {
    Ok(match operation {
        I2cOperation::WriteRead { bytes, read_length } => {
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
            os::I2cOperation::Transfer {
                write: bytes,
                read: u16::try_from(read).unwrap_or(u16::MAX),
            }
        }
        I2cOperation::ReadByte { register } => os::I2cOperation::ReadByte { register },
        I2cOperation::ReadWord { register } => os::I2cOperation::ReadWord { register },
        I2cOperation::WriteByte { register, value } => {
            os::I2cOperation::WriteByte { register, value }
        }
        I2cOperation::WriteWord { register, value } => {
            os::I2cOperation::WriteWord { register, value }
        }
    })
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
