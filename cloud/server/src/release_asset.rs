//! Files attached to releases (docs/spec/cloud.md#model-release-asset).
//!
//! ```text
//! form      multipart/form-data of a write: fields, and the file, which is written into the database as it arrives
//! part      a part of a file that is uploaded in parts (`data_api::upload` begins and ends the upload)
//! download  the file, whole or a range of it, for callers who may read the row
//! ```

pub(crate) mod download;
mod form;
pub(crate) mod part;

use std::time::Duration;

use cloud_core::clock::now;
use cloud_core::cloud::SharedCloud;
use odata::Address;
use resources::Version;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

pub(crate) use form::{AssetForm, disposition, is_form, media_type, plain_name, read};

/// Interval between removals of unused files.
const TIDY: Duration = Duration::from_secs(3600);
/// An upload that takes longer, in milliseconds, is abandoned.
const ABANDONED_AFTER: i64 = 24 * 3600 * 1000;

/// Whether a request is to the resource that has files.
pub(crate) fn is_addressed(version: Version, request: &odata::Request) -> bool {
    match &request.address {
        Address::Resource(path) => {
            let resource = version.model().resource(&path.resource.text);
            resource.is_some_and(|resource| resource.table == "release_asset")
        }
        Address::Metadata => false,
    }
}

/// Deletes abandoned uploads, until `stop`.
pub(crate) async fn tidying(cloud: SharedCloud, stop: CancellationToken) {
    let mut times = interval(TIDY);
    while stop.run_until_cancelled(times.tick()).await.is_some() {
        let since = now() - ABANDONED_AFTER;
        if let Err(error) = cloud.database.drop_abandoned_files(since).await {
            tracing::warn!("failed to delete abandoned uploads: {error}");
        }
    }
}
