//! `wit/serial.wit`: the serial ports that the policy names.

use plugin_protocol::{Handle, SERIAL_BYTES, SerialOpen, SerialRead, SerialSettings, SerialWrite};
use wasmtime::component::Resource;

use crate::bindings::Port;
use crate::bindings::platform::supervisor::serial::{self, Parity, SerialError, Settings};
use crate::guest::{Guest, GuestAccess, GuestData, host};
use crate::instance_host::Answer;

/// The longest name of a port, in bytes: that of the kernel's longest path.
const NAME: usize = 4096;

impl serial::Host for &mut Guest {}

impl serial::HostPort for &mut Guest {
    async fn drop(&mut self, port: Resource<Port>) -> wasmtime::Result<()> {
        let Port(handle) = self.table.delete(port)?;
        self.host.release(handle);
        Ok(())
    }
}

impl serial::HostPortWithStore<Guest> for GuestData {
    async fn open(
        access: &GuestAccess,
        name: String,
        settings: Settings,
    ) -> Answer<Resource<Port>, SerialError> {
        if name.len() > NAME {
            return Ok(Err(SerialError::Invalid("the name is too long".to_owned())));
        }
        let host = host(access);
        let settings = settings.into();
        let handle = match host.try_ask(SerialOpen { name, settings }).await? {
            Ok(handle) => handle,
            Err(error) => return Ok(Err(error)),
        };
        let pushed = access.with(|mut access| access.get().table.push(Port(handle)));
        Ok(pushed.map_err(|_| {
            host.release(handle);
            SerialError::Other("too many resources at a time".to_owned())
        }))
    }

    async fn read(
        access: &GuestAccess,
        port: Resource<Port>,
        most: u32,
        milliseconds: u32,
    ) -> Answer<Vec<u8>, SerialError> {
        let port = handle(access, &port)?;
        let read = SerialRead {
            port,
            most,
            milliseconds,
        };
        host(access).try_ask(read).await
    }

    async fn write(
        access: &GuestAccess,
        port: Resource<Port>,
        bytes: Vec<u8>,
    ) -> Answer<(), SerialError> {
        if bytes.len() > SERIAL_BYTES {
            let length = bytes.len();
            let why = format!("a write has at most {SERIAL_BYTES} bytes, not {length}");
            return Ok(Err(SerialError::Invalid(why)));
        }
        let port = handle(access, &port)?;
        host(access).try_ask(SerialWrite { port, bytes }).await
    }
}

fn handle(access: &GuestAccess, port: &Resource<Port>) -> wasmtime::Result<Handle> {
    access.with(|mut access| Ok(access.get().table.get(port)?.0))
}

mirror! { one way struct Settings, SerialSettings { baud, data_bits, parity, stop_bits } }
mirror! { one way enum Parity, plugin_protocol::Parity { None, Even, Odd } }
mirror! { one way enum plugin_protocol::SerialError, SerialError { NotGranted(why), NotFound(why), Busy(why), Invalid(why), Other(why) } }
