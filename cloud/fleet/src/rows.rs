//! Parts of rows that several commands ask the cloud for.

use serde::{Deserialize, Deserializer, Serialize};

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

/// The slug of the row that an expanded link leads to.
pub(crate) fn slug<'de, D: Deserializer<'de>>(link: D) -> Result<Option<String>, D::Error> {
    Ok(first::<Slug, D>(link)?.map(|row| row.slug))
}

/// The name of the role that an expanded link leads to.
pub(crate) fn role<'de, D: Deserializer<'de>>(link: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Role {
        name: String,
    }
    Ok(first::<Role, D>(link)?.map(|row| row.name))
}

/// The row that an expanded link leads to: a list of one, or of none.
pub(crate) fn first<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    link: D,
) -> Result<Option<T>, D::Error> {
    Ok(Vec::deserialize(link)?.into_iter().next())
}

/// A label of a device, a fleet or a release, told alike wherever it is.
#[derive(Deserialize, Serialize)]
pub(crate) struct Tag {
    #[serde(rename(deserialize = "tag_key"))]
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Tag {
    /// Tags in a line, for people.
    pub(crate) fn in_a_line(tags: &[Tag]) -> String {
        let tags: Vec<String> = tags
            .iter()
            .map(|tag| format!("{}={}", tag.key, tag.value))
            .collect();
        tags.join(", ")
    }
}
