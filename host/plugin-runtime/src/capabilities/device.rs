//! `wit/device.wit`: reads the supervisor's information about its device.

use plugin_protocol::{DeviceIdentity, DeviceState, Identity};

use crate::bindings::platform::supervisor::device;
use crate::guest::Guest;

impl device::Host for &mut Guest {
    async fn identity(&mut self) -> wasmtime::Result<device::DeviceIdentity> {
        Ok(self.host.ask(DeviceIdentity {}).await?.into())
    }

    async fn state(&mut self) -> wasmtime::Result<String> {
        self.host.ask(DeviceState {}).await
    }
}

mirror! { one way struct Identity, device::DeviceIdentity { uuid, name, device_type, arch } }
