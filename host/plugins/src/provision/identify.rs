//! Has the plugin that provides the action `identify` identify the device.

use plugin_protocol::wit::identify::Host;

use super::InstanceCall;

impl Host for InstanceCall<'_> {
    async fn identify(&self) -> Result<(), String> {
        let identify = &self.plugin.identify;
        identify.start(self.origin.through(&self.plugin.name));
        identify.ended().await
    }
}
