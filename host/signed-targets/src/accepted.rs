//! What a device has accepted so far: the versions below which it takes none.

use std::collections::BTreeMap;

use model::AppUuid;
use serde::{Deserialize, Serialize};

use crate::Digest;

/// By app. An app that was taken off the device keeps its entry, so that no older release of it comes back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AcceptedReleases(pub BTreeMap<AppUuid, AcceptedRelease>);

/// The last release of an app that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedRelease {
    /// Of its statement.
    pub version: u64,
    /// Of its statement's text. The same text needs no second look at its signature and its expiry.
    pub statement: Digest,
    /// The device is to run the app.
    pub is_on_device: bool,
}

impl AcceptedReleases {
    /// The app's entry, where the device is to run the app.
    pub(crate) fn on_device(&self, app: &AppUuid) -> Option<&AcceptedRelease> {
        self.0.get(app).filter(|release| release.is_on_device)
    }
}
