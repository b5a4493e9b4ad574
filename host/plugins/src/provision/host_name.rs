//! The host's name.

use plugin_protocol::wit::host_name::{Host, HostNameError};

use super::InstanceCall;

impl Host for InstanceCall<'_> {
    async fn get(&self) -> Result<Option<String>, HostNameError> {
        self.plugin.services.host_name.get().await
    }

    async fn set(&self, name: String) -> Result<(), HostNameError> {
        self.plugin.services.host_name.set(name).await
    }
}
