//! What the supervisor knows of its device.

use plugin_protocol::wit::device::{DeviceIdentity, Host};

use super::InstanceCall;

impl Host for InstanceCall<'_> {
    async fn identity(&self) -> DeviceIdentity {
        self.plugin.services.device.identity()
    }

    async fn state(&self) -> String {
        self.plugin.services.device.state().to_string()
    }
}
