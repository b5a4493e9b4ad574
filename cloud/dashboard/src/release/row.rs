//! A release, as its page reads it.

use serde::Deserialize;
use serde_json::Value;

use crate::page_error::PageResult;
use crate::rows::{Id, ReleaseName, ReleaseState, ServiceName};
use crate::session_user::SessionUser;

#[derive(Deserialize)]
pub(super) struct Release {
    #[serde(flatten)]
    pub(super) name: ReleaseName,
    #[serde(flatten)]
    pub(super) state: ReleaseState,
    pub(super) semver: String,
    pub(super) source: String,
    pub(super) invalidation_reason: Option<String>,
    pub(super) note: Option<String>,
    pub(super) signed_statement: Option<String>,
    #[serde(flatten)]
    pub(super) build: BuildTimes,
    pub(super) composition: Value,
    #[serde(rename = "belongs_to__application")]
    pub(super) fleet: Vec<OwnerFleet>,
    #[serde(rename = "is_created_by__user")]
    pub(super) author: Vec<Author>,
    #[serde(rename = "release_image")]
    pub(super) images: Vec<ReleaseImage>,
}

/// When it was built.
#[derive(Deserialize)]
pub(super) struct BuildTimes {
    pub(super) start_timestamp: Option<String>,
    pub(super) end_timestamp: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct OwnerFleet {
    pub(super) id: i64,
    #[serde(rename = "should_be_running__release")]
    target: Option<Id>,
    should_track_latest_release: bool,
}

#[derive(Deserialize)]
pub(super) struct Author {
    pub(super) username: String,
}

#[derive(Deserialize)]
pub(super) struct ReleaseImage {
    pub(super) image: Vec<BuiltImage>,
}

#[derive(Deserialize)]
pub(super) struct BuiltImage {
    pub(super) status: String,
    pub(super) image_size: Option<Value>,
    pub(super) content_hash: Option<String>,
    #[serde(rename = "is_stored_at__image_location")]
    pub(super) location: String,
    #[serde(rename = "is_a_build_of__service")]
    pub(super) service: Vec<ServiceName>,
}

impl Release {
    /// Finds the release of a number.
    ///
    /// # Errors
    /// 404 if the user does not see it.
    pub(super) async fn find(user: &SessionUser, id: i64) -> PageResult<Self> {
        let query = "$select=id,commit,raw_version,semver,status,source,is_final,is_invalidated,is_passing_tests,\
             invalidation_reason,note,signed_statement,start_timestamp,end_timestamp,composition\
             &$expand=belongs_to__application($select=id,should_be_running__release,should_track_latest_release),\
             is_created_by__user($select=username),\
             release_image($select=id;$orderby=id asc;$top=200;$expand=image($select=status,image_size,content_hash,\
             is_stored_at__image_location;$expand=is_a_build_of__service($select=id,service_name)))";
        let path = format!("/release({id})");
        user.row(&path, query).await
    }

    /// Returns whether it is the target of its fleet.
    pub(super) fn is_target(&self) -> bool {
        let mut fleets = self.fleet.iter();
        fleets.any(|fleet| fleet.target.is_some_and(|target| target.id == self.name.id))
    }

    /// Returns whether its fleet is pinned to it.
    pub(super) fn is_pin(&self) -> bool {
        self.is_target()
            && self
                .fleet
                .iter()
                .all(|fleet| !fleet.should_track_latest_release)
    }
}
