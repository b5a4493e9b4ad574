//! Has the plugin that provides the action `identify` identify the device.

use plugin_protocol::wit::identify::Host;

use super::InstanceCall;

impl Host for InstanceCall<'_> {
    async fn identify(&self) -> Result<(), String> {
        self.identify.start(self.origin.through(&self.plugin.name));
        self.identify.ended().await
    }
}
