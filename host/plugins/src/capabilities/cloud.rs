//! `wit/cloud.wit`: the records that the cloud keeps of this device, of the kinds that the policy names.

use std::sync::Arc;

use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::cloud::{self, CloudError};
use crate::config::CloudRefusal;
use crate::guest::{Guest, Surroundings, ThisGuest};

/// Bytes of the rows that one call may answer.
const MAX_ROWS: usize = 1 << 20;
/// Fields that one call may ask for.
const MAX_FIELDS: usize = 32;

impl cloud::Host for &mut Guest {}

impl cloud::HostWithStore<Guest> for ThisGuest {
    async fn records(
        accessor: &Accessor<Guest, Self>,
        kind: String,
        fields: Vec<String>,
    ) -> Result<String, CloudError> {
        let around = granted(accessor, &kind)?;
        if fields.is_empty() || fields.len() > MAX_FIELDS {
            let why = format!("a record has 1 to {MAX_FIELDS} fields that can be asked for");
            return Err(CloudError::Refused(why));
        }
        let rows = around.cloud.records(&kind, &fields).await.map_err(told)?;
        let rows = serde_json::Value::Array(rows).to_string();
        if rows.len() > MAX_ROWS {
            let why = format!("the cloud has more than {} KiB of `{kind}`", MAX_ROWS >> 10);
            return Err(CloudError::Unreachable(why));
        }
        Ok(rows)
    }

    async fn queue(
        accessor: &Accessor<Guest, Self>,
        kind: String,
        values: Vec<(String, String)>,
    ) -> Result<(), CloudError> {
        let around = granted(accessor, &kind)?;
        around.cloud.queue(&kind, values).await.map_err(told)
    }
}

fn granted(
    accessor: &Accessor<Guest, ThisGuest>,
    kind: &str,
) -> Result<Arc<Surroundings>, CloudError> {
    let around = accessor.with(|mut access| Arc::clone(&access.get().around));
    if around.grants.records.contains(kind) {
        return Ok(around);
    }
    Err(CloudError::Refused(format!(
        "the policy does not name `{kind}` among the `records` of the plugin `{}`",
        around.name
    )))
}

fn told(refusal: CloudRefusal) -> CloudError {
    match refusal {
        CloudRefusal::Unmanaged => CloudError::Unmanaged,
        CloudRefusal::Unprovisioned => CloudError::Unprovisioned,
        CloudRefusal::Unreachable(why) => CloudError::Unreachable(why),
        CloudRefusal::Refused(why) => CloudError::Refused(why),
        CloudRefusal::Failed(why) => CloudError::Other(why),
    }
}
