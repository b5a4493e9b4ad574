//! The serial ports that the policy names.

use std::sync::Arc;
use std::time::Duration;

use plugin_protocol::text::cut;
use plugin_protocol::{
    Handle, Provide, SERIAL_BYTES, SerialError, SerialOpen, SerialRead, SerialSettings, SerialWrite,
};

use super::InstanceCall;
use crate::hardware::serial_port::Port;
use crate::holdings::HeldResource;
use crate::refusal::Refusal;

/// The longest that a plugin may wait for something to be received.
const LONGEST_READ: Duration = Duration::from_secs(60);

impl InstanceCall<'_> {
    async fn open_serial(
        &self,
        name: String,
        settings: SerialSettings,
    ) -> Result<Handle, SerialError> {
        if !self.plugin.grants.serial.contains(&name) {
            return Err(SerialError::NotGranted(cut(format!(
                "the policy does not name `{name}` in `serial` of the plugin `{}`",
                self.plugin.name
            ))));
        }
        let port = Port::open(&name, settings, &self.plugin.share.jobs).await?;
        self.holdings
            .add(HeldResource::Serial(Arc::new(port)))
            .map_err(|_| SerialError::Other("too many resources at a time".to_owned()))
    }
}

impl Provide<SerialOpen, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        SerialOpen { name, settings }: SerialOpen,
    ) -> Result<Result<Handle, SerialError>, Refusal> {
        Ok(self.open_serial(name, settings).await)
    }
}

impl Provide<SerialRead, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        SerialRead {
            port,
            most,
            milliseconds,
        }: SerialRead,
    ) -> Result<Result<Vec<u8>, SerialError>, Refusal> {
        let port = self.holdings.serial(port)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if !(1..=SERIAL_BYTES).contains(&most) {
            return Ok(Err(SerialError::Invalid(format!(
                "a read has 1 to {SERIAL_BYTES} bytes, not {most}"
            ))));
        }
        let within = Duration::from_millis(milliseconds.into()).min(LONGEST_READ);
        Ok(port.read(most, within).await)
    }
}

impl Provide<SerialWrite, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        SerialWrite { port, bytes }: SerialWrite,
    ) -> Result<Result<(), SerialError>, Refusal> {
        let port = self.holdings.serial(port)?;
        if bytes.len() > SERIAL_BYTES {
            return Ok(Err(SerialError::Invalid(format!(
                "a write has at most {SERIAL_BYTES} bytes, not {}",
                bytes.len()
            ))));
        }
        Ok(port.write(&bytes).await)
    }
}
