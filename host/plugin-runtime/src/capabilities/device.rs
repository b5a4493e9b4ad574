//! `wit/device.wit`: reads what the supervisor knows of its device.

use plugin_protocol::{DeviceIdentity, DeviceState};

use crate::bindings::platform::supervisor::device;
use crate::guest::Guest;

impl device::Host for &mut Guest {
    async fn identity(&mut self) -> wasmtime::Result<device::DeviceIdentity> {
        let identity = self.host.ask(DeviceIdentity {}).await?;
        Ok(device::DeviceIdentity {
            uuid: identity.uuid,
            name: identity.name,
            device_type: identity.device_type,
            arch: identity.arch,
        })
    }

    async fn state(&mut self) -> wasmtime::Result<String> {
        self.host.ask(DeviceState {}).await
    }
}
