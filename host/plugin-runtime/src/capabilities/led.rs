//! `wit/led.wit`: the LEDs of the device.

use plugin_protocol::{LedNames, LedOpen, LedSet, OpenLed};
use wasmtime::component::Resource;

use crate::bindings::platform::supervisor::led::{self, LedError};
use crate::guest::Guest;
use crate::instance_host::Answer;

impl led::Host for &mut Guest {
    async fn names(&mut self) -> Answer<Vec<String>, LedError> {
        self.host.try_ask(LedNames {}).await
    }
}

impl led::HostLight for &mut Guest {
    async fn open(&mut self, name: String) -> Answer<Resource<OpenLed>, LedError> {
        let opened = match self.host.try_ask(LedOpen { name }).await? {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let light = opened.light;
        Ok(self.table.push(opened).map_err(|_| {
            self.host.release(light);
            LedError::Other("too many LEDs at a time".to_owned())
        }))
    }

    async fn max(&mut self, light: Resource<OpenLed>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&light)?.max)
    }

    async fn set(&mut self, light: Resource<OpenLed>, brightness: u32) -> Answer<(), LedError> {
        let light = self.table.get(&light)?.light;
        self.host.try_ask(LedSet { light, brightness }).await
    }

    async fn drop(&mut self, light: Resource<OpenLed>) -> wasmtime::Result<()> {
        let light = self.table.delete(light)?;
        self.host.release(light.light);
        Ok(())
    }
}

mirror! { one way enum plugin_protocol::LedError, LedError { NotFound(name), Busy(name), Other(why) } }
