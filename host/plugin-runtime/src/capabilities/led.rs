//! `wit/led.wit`: the LEDs of the device.

use plugin_protocol::{LedNames, LedOpen, LedSet, OpenLed};
use wasmtime::component::Resource;

use crate::bindings::platform::supervisor::led::{self, LedError};
use crate::guest::{Answer, Guest};

/// An LED that a call holds: the host's handle for it.
#[expect(
    unreachable_pub,
    reason = "generated code re-exports it within this crate"
)]
pub struct Light(OpenLed);

impl led::Host for &mut Guest {
    async fn names(&mut self) -> Answer<Vec<String>, LedError> {
        self.host.try_ask(LedNames {}).await
    }
}

impl led::HostLight for &mut Guest {
    async fn open(&mut self, name: String) -> Answer<Resource<Light>, LedError> {
        let opened = match self.host.try_ask(LedOpen { name }).await? {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let light = opened.light;
        Ok(self.table.push(Light(opened)).map_err(|_| {
            self.host.release(light);
            LedError::Other("too many LEDs at a time".to_owned())
        }))
    }

    async fn max(&mut self, light: Resource<Light>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&light)?.0.max)
    }

    async fn set(&mut self, light: Resource<Light>, brightness: u32) -> Answer<(), LedError> {
        let light = self.table.get(&light)?.0.light;
        self.host.try_ask(LedSet { light, brightness }).await
    }

    async fn drop(&mut self, light: Resource<Light>) -> wasmtime::Result<()> {
        let light = self.table.delete(light)?;
        self.host.release(light.0.light);
        Ok(())
    }
}

mirror! { one way enum plugin_protocol::LedError, LedError { NotFound(name), Busy(name), Other(why) } }
