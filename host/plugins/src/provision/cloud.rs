//! The records that the cloud stores for this device, of the kinds that the policy names.

use plugin_protocol::{CloudQueue, CloudRecords, CloudRefusal};

use crate::plugin_context::PluginContext;

/// The most bytes of rows that one call may return.
const MAX_ROWS: usize = 1 << 20;
/// The most fields that one call may ask for.
const MAX_FIELDS: usize = 32;

impl PluginContext {
    pub(super) async fn records(
        &self,
        CloudRecords { kind, fields }: CloudRecords,
    ) -> Result<String, CloudRefusal> {
        self.check_kind(&kind)?;
        if fields.is_empty() || fields.len() > MAX_FIELDS {
            let why = format!("a record has 1 to {MAX_FIELDS} fields that can be asked for");
            return Err(CloudRefusal::Refused(why));
        }
        let rows = self.services.cloud.records(&kind, &fields).await?;
        let rows = serde_json::Value::Array(rows).to_string();
        if rows.len() > MAX_ROWS {
            let why = format!("the cloud has more than {} KiB of `{kind}`", MAX_ROWS >> 10);
            return Err(CloudRefusal::Unreachable(why));
        }
        Ok(rows)
    }

    pub(super) async fn queue(
        &self,
        CloudQueue { kind, values }: CloudQueue,
    ) -> Result<(), CloudRefusal> {
        self.check_kind(&kind)?;
        self.services.cloud.queue(&kind, values).await
    }

    fn check_kind(&self, kind: &str) -> Result<(), CloudRefusal> {
        if self.grants.records.contains(kind) {
            return Ok(());
        }
        Err(CloudRefusal::Refused(format!(
            "the policy does not name `{kind}` among the `records` of the plugin `{}`",
            self.name
        )))
    }
}
