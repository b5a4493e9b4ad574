//! The records that the cloud stores for this device, of the kinds that the policy names.

use plugin_protocol::wit::cloud::{CloudError, Host};

use super::InstanceCall;

/// The most bytes of rows that one call may return.
const MAX_ROWS: usize = 1 << 20;
/// The most fields that one call may ask for.
const MAX_FIELDS: usize = 32;

impl Host for InstanceCall<'_> {
    async fn records(&self, kind: String, fields: Vec<String>) -> Result<String, CloudError> {
        self.check_kind(&kind)?;
        if fields.is_empty() || fields.len() > MAX_FIELDS {
            let why = format!("a record has 1 to {MAX_FIELDS} fields that can be asked for");
            return Err(CloudError::Refused(why));
        }
        let rows = self.plugin.services.cloud.records(&kind, &fields).await?;
        let rows = serde_json::Value::Array(rows).to_string();
        if rows.len() > MAX_ROWS {
            let why = format!("the cloud has more than {} KiB of `{kind}`", MAX_ROWS >> 10);
            return Err(CloudError::Unreachable(why));
        }
        Ok(rows)
    }

    async fn queue(&self, kind: String, values: Vec<(String, String)>) -> Result<(), CloudError> {
        self.check_kind(&kind)?;
        self.plugin.services.cloud.queue(&kind, values).await
    }
}

impl InstanceCall<'_> {
    fn check_kind(&self, kind: &str) -> Result<(), CloudError> {
        if self.plugin.grants.records.contains(kind) {
            return Ok(());
        }
        Err(CloudError::Refused(format!(
            "the policy does not name `{kind}` among the `records` of the plugin `{}`",
            self.plugin.name
        )))
    }
}
