//! `wit/device.wit`: reads what the supervisor knows of its device.

use crate::bindings::platform::supervisor::device;
use crate::guest::Guest;

impl device::Host for &mut Guest {
    fn identity(&mut self) -> device::DeviceIdentity {
        let identity = self.around.device.identity();
        device::DeviceIdentity {
            uuid: identity.uuid,
            name: identity.name,
            device_type: identity.device_type,
            arch: identity.arch,
        }
    }

    fn state(&mut self) -> String {
        self.around.device.state().to_string()
    }
}
