//! Parts of rows that several commands ask the cloud for.

use serde::{Deserialize, Serialize};

/// A row by its number alone.
#[derive(Deserialize)]
pub(crate) struct Id {
    pub(crate) id: i64,
}

/// What has a slug: a fleet, a kind of board, a kind of processor.
#[derive(Deserialize)]
pub(crate) struct Slug {
    pub(crate) slug: String,
}

/// A service.
#[derive(Deserialize)]
pub(crate) struct ServiceName {
    pub(crate) service_name: String,
}

/// A release, as it is called beside what runs it.
#[derive(Deserialize)]
pub(crate) struct ReleaseName {
    pub(crate) commit: String,
    pub(crate) raw_version: String,
}

/// A label of a device, a fleet or a release.
#[derive(Deserialize, Serialize)]
pub(crate) struct Tag {
    pub(crate) tag_key: String,
    pub(crate) value: String,
}
