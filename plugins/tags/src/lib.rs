//! The device's tags in its cloud: `GET` and `PATCH /v2/device/tags` (docs/spec/device.md#cloud-queue).
//!
//! Each `GET` queries the cloud; nothing is cached here, so the answer is never out of date. A `PATCH` is
//! queued: the supervisor sends it when the cloud can be reached.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use supervisor_sdk::{Answer, Error, Fields, Json, Response, cloud, plugin};

plugin! {
    capabilities: { cloud => "reads and sets the device's tags in its cloud" }
    routes: {
        GET "/v2/device/tags" => tags,
        PATCH "/v2/device/tags" => set_tags,
    }
    openapi: "openapi.json"
    // The cloud has a minute for each phase of an answer.
    limits: { wall_ms: 300000 }
}

/// The cloud's name for a tag.
const KIND: &str = "device_tag";

/// A tag in the cloud's form.
#[derive(Deserialize)]
struct Record {
    id: u64,
    tag_key: String,
    value: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Tag {
    id: u64,
    name: String,
    value: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Tags {
    status: &'static str,
    tags: Vec<Tag>,
}

async fn tags() -> Result<Json<Tags>, Error> {
    let records = cloud::records(KIND, &["id", "tag_key", "value"]).await;
    let records: Vec<Record> = records.map_err(|error| match error {
        cloud::Error::Unprovisioned => {
            Error::internal("Attempt to retrieve device tags before provision")
        }
        other => other.into(),
    })?;
    let tags = records.into_iter().map(|record| Tag {
        id: record.id,
        name: record.tag_key,
        value: record.value,
    });
    Ok(Json(Tags {
        status: "success",
        tags: tags.collect(),
    }))
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct QueuedAnswer {
    status: &'static str,
}

async fn set_tags(Fields(tags): Fields<BTreeMap<String, String>>) -> Result<Response, Error> {
    check(&tags).map_err(Error::bad_request)?;
    // An empty request is valid, and there is nothing to send.
    if !tags.is_empty() {
        cloud::queue(KIND, tags).await?;
    }
    let queued = Json(QueuedAnswer { status: "success" }).answer()?;
    Ok(queued.with_status(202))
}

/// Refuses at once what the cloud would refuse: nobody waits for the cloud's answer.
fn check(tags: &BTreeMap<String, String>) -> Result<(), String> {
    for (name, value) in tags {
        let length = name.chars().count();
        if !(1..=100).contains(&length) || name.contains(char::is_whitespace) {
            let excerpt: String = name.chars().take(100).collect();
            return Err(format!(
                "`{excerpt}` cannot be a tag's name: a name has 1 to 100 characters, none of them white space"
            ));
        }
        if value.chars().count() > 10_000 {
            return Err(format!(
                "the value of `{name}` has more than 10000 characters"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_the_schemas_of_what_is_answered() {
        let mut schemas = supervisor_testing::schemas();
        schemas.subschema_for::<Tags>();
        schemas.subschema_for::<QueuedAnswer>();
        supervisor_testing::assert_described(include_str!("../openapi.json"), schemas);
    }
}
