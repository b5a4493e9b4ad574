//! The releases that a device has accepted so far: it accepts no lower versions.

use std::collections::BTreeMap;

use model::AppUuid;
use serde::{Deserialize, Serialize};

use crate::Digest;

/// The releases by app. An app that was removed from the device keeps its entry, so that no older release
/// of it comes back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AcceptedReleases(pub BTreeMap<AppUuid, AcceptedRelease>);

/// The last release of an app that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedRelease {
    /// The version of its statement.
    pub version: u64,
    /// The digest of its statement's text. The signature and the expiry of the same text are not checked
    /// again.
    pub statement: Digest,
    /// Whether the device should run the app.
    pub is_on_device: bool,
}

impl AcceptedReleases {
    /// Returns the app's entry, if the device should run the app.
    pub(crate) fn on_device(&self, app: &AppUuid) -> Option<&AcceptedRelease> {
        self.0.get(app).filter(|release| release.is_on_device)
    }
}
