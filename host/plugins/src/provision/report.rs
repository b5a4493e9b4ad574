//! Fields that a plugin adds to the device's report to its cloud.

use plugin_protocol::wit::report::{FieldValue, Host, ReportError};

use super::InstanceCall;

impl Host for InstanceCall<'_> {
    async fn set(
        &self,
        name: String,
        value: FieldValue,
        unit: Option<String>,
    ) -> Result<(), ReportError> {
        self.plugin.fields.set(name, value, unit)
    }

    async fn remove(&self, name: String) -> Result<(), ReportError> {
        self.plugin.fields.remove(&name)
    }
}
