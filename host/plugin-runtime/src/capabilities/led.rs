//! `wit/led.wit`: the LEDs of the device.

use plugin_protocol::{LedNames, LedOpen, LedSet, OpenLed};
use wasmtime::component::Resource;

use crate::bindings::platform::supervisor::led::{self, LedError};
use crate::guest::Guest;

/// An LED in the hands of a call: the host's handle of it.
#[expect(
    unreachable_pub,
    reason = "generated code re-exports it within this crate"
)]
pub struct Light(OpenLed);

impl led::Host for &mut Guest {
    async fn names(&mut self) -> wasmtime::Result<Result<Vec<String>, LedError>> {
        let names = self.host.ask(LedNames {}).await?;
        Ok(names.map_err(Into::into))
    }
}

impl led::HostLight for &mut Guest {
    async fn open(&mut self, name: String) -> wasmtime::Result<Result<Resource<Light>, LedError>> {
        let opened = match self.host.ask(LedOpen { name }).await? {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error.into())),
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

    async fn set(
        &mut self,
        light: Resource<Light>,
        brightness: u32,
    ) -> wasmtime::Result<Result<(), LedError>> {
        let light = self.table.get(&light)?.0.light;
        let set = self.host.ask(LedSet { light, brightness }).await?;
        Ok(set.map_err(Into::into))
    }

    async fn drop(&mut self, light: Resource<Light>) -> wasmtime::Result<()> {
        let light = self.table.delete(light)?;
        self.host.release(light.0.light);
        Ok(())
    }
}

impl From<plugin_protocol::LedError> for LedError {
    fn from(error: plugin_protocol::LedError) -> LedError {
        match error {
            plugin_protocol::LedError::NotFound(name) => LedError::NotFound(name),
            plugin_protocol::LedError::Busy(name) => LedError::Busy(name),
            plugin_protocol::LedError::Other(why) => LedError::Other(why),
        }
    }
}
