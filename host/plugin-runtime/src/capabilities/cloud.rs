//! `wit/cloud.wit`: the records that the cloud keeps of this device.

use plugin_protocol::{CloudQueue, CloudRecords, CloudRefusal};
use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::cloud::{self, CloudError};
use crate::guest::{Guest, ThisGuest, host};

impl cloud::Host for &mut Guest {}

impl cloud::HostWithStore<Guest> for ThisGuest {
    async fn records(
        accessor: &Accessor<Guest, Self>,
        kind: String,
        fields: Vec<String>,
    ) -> wasmtime::Result<Result<String, CloudError>> {
        let answer = host(accessor).ask(CloudRecords { kind, fields }).await?;
        Ok(answer.map_err(Into::into))
    }

    async fn queue(
        accessor: &Accessor<Guest, Self>,
        kind: String,
        values: Vec<(String, String)>,
    ) -> wasmtime::Result<Result<(), CloudError>> {
        let answer = host(accessor).ask(CloudQueue { kind, values }).await?;
        Ok(answer.map_err(Into::into))
    }
}

impl From<CloudRefusal> for CloudError {
    fn from(refusal: CloudRefusal) -> CloudError {
        match refusal {
            CloudRefusal::Unmanaged => CloudError::Unmanaged,
            CloudRefusal::Unprovisioned => CloudError::Unprovisioned,
            CloudRefusal::Unreachable(why) => CloudError::Unreachable(why),
            CloudRefusal::Refused(why) => CloudError::Refused(why),
            CloudRefusal::Failed(why) => CloudError::Other(why),
        }
    }
}
