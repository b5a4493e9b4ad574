//! `wit/cloud.wit`: the records that the cloud stores for this device.

use plugin_protocol::{CloudQueue, CloudRecords, CloudRefusal};

use crate::bindings::platform::supervisor::cloud::{self, CloudError};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl cloud::Host for &mut Guest {}

impl cloud::HostWithStore<Guest> for GuestData {
    async fn records(
        access: &GuestAccess,
        kind: String,
        fields: Vec<String>,
    ) -> Answer<String, CloudError> {
        host(access).try_ask(CloudRecords { kind, fields }).await
    }

    async fn queue(
        access: &GuestAccess,
        kind: String,
        values: Vec<(String, String)>,
    ) -> Answer<(), CloudError> {
        host(access).try_ask(CloudQueue { kind, values }).await
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
