//! Parts of rows that several commands request.

use serde::{Deserialize, Deserializer, Serialize};

/// A row with only its id.
#[derive(Deserialize)]
pub(crate) struct Id {
    pub(crate) id: i64,
}

/// A row with a slug: a fleet, a device type, a processor architecture.
#[derive(Deserialize)]
pub(crate) struct Slug {
    pub(crate) slug: String,
}

/// A service.
#[derive(Deserialize)]
pub(crate) struct ServiceName {
    pub(crate) service_name: String,
}

/// A release, with the fields for its name next to a device or fleet.
#[derive(Deserialize)]
pub(crate) struct ReleaseName {
    pub(crate) commit: String,
    pub(crate) raw_version: String,
}

/// Parses the slug of the row that an expanded link refers to.
pub(crate) fn slug<'de, D: Deserializer<'de>>(link: D) -> Result<Option<String>, D::Error> {
    Ok(first::<Slug, D>(link)?.map(|row| row.slug))
}

/// Parses the name of the role that an expanded link refers to.
pub(crate) fn role<'de, D: Deserializer<'de>>(link: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Role {
        name: String,
    }
    Ok(first::<Role, D>(link)?.map(|row| row.name))
}

/// Parses the row that an expanded link refers to: a list of one element or none.
pub(crate) fn first<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    link: D,
) -> Result<Option<T>, D::Error> {
    Ok(Vec::deserialize(link)?.into_iter().next())
}

/// A tag of a device, a fleet or a release, printed in the same way everywhere.
#[derive(Deserialize, Serialize)]
pub(crate) struct Tag {
    #[serde(rename(deserialize = "tag_key"))]
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Tag {
    /// Formats tags in a line, for people.
    pub(crate) fn in_a_line(tags: &[Tag]) -> String {
        let tags: Vec<String> = tags
            .iter()
            .map(|tag| format!("{}={}", tag.key, tag.value))
            .collect();
        tags.join(", ")
    }
}
