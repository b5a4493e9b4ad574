//! Every resource with every field.

use std::collections::HashMap;

use data::SystemPurpose;
use data::query::Caller;
use resources::{Check, Column, Field, Resource, Source, Type, Writer};
use serde_json::{Value, json};

use super::cloud::{Cloud, on_clouds};

/// Returns a value that the field accepts; `rows` has a row of each resource for links.
pub(super) fn value(field: &Field, number: i64, rows: &HashMap<&str, i64>) -> Option<Value> {
    Some(match field.kind {
        Type::Integer => number.into(),
        Type::BigInteger => "9007199254740993".into(),
        Type::Boolean => (!matches!(field.default, resources::Default::Boolean(true))).into(),
        Type::Timestamp => "2030-01-02T03:04:05.678Z".into(),
        Type::Json { .. } | Type::JsonText { .. } => json!({"z": [1, "ü", null], "a": {"b": 1.5}}),
        Type::Word(words) => words[words.len() - 1].into(),
        Type::Link { to, .. } => (*rows.get(to)?).into(),
        Type::Text { min, max } => match field.check {
            Some(Check::FleetUuid) => "0123456789ab4def8123456789abcdef".into(),
            Some(Check::DeviceUuid) => "0123456789abcdef0123456789abcdef".into(),
            Some(Check::Email) => "someone@example.com".into(),
            Some(Check::ConfigName) => "PLATFORM_X".into(),
            Some(Check::Version) => "1.2.3".into(),
            _ if max < 4 => "x".repeat(min.max(1)).into(),
            Some(_) => "value_1".into(),
            None if field.name == "needs__os_version_range" => ">=2.0.0 <3".into(),
            None if field.name == "os_version" => "2.12.0".into(),
            None if field.name == "supervisor_version" => "1.2.3".into(),
            None if max > 60 => "it's \"ünïcode\" \\ ? $1 %".into(),
            None => format!("v{number}").into(),
        },
    })
}

/// Returns whether a request for a row of this resource may set the field freely, without influence of the rules.
pub(super) fn is_free(resource: &Resource, field: &Field) -> bool {
    let plain = matches!(field.column, Column::Stored(_)) && field.writer != Writer::Input;
    let by_the_platform = ["id", "created_at", "modified_at"];
    let by_rules = match resource.name {
        "application" => &[
            "slug",
            "should_be_running__release",
            "should_track_latest_release",
        ][..],
        "device" => &[
            "is_pinned_on__release",
            "should_be_operated_by__release",
            "should_be_managed_by__release",
            "is_online",
            "last_vpn_event",
            "last_connectivity_event",
            "last_update_status_event",
            "changed_api_heartbeat_state_on__date",
        ],
        "release" => &["revision", "is_finalized_at__date", "update_timestamp"],
        "image" => &["is_stored_at__image_location"],
        _ => &[],
    };
    let by_others = by_rules.contains(&field.name) || by_the_platform.contains(&field.name);
    plain && !field.owns && !by_others
}

/// Returns the value of a field, if it can be read.
async fn read(cloud: &Cloud, resource: &Resource, id: i64, field: &Field) -> Option<Value> {
    // All flags are set here, including the one that hides the field.
    if field.secret || field.secret_where.is_some() {
        return None;
    }
    let read = cloud.field(resource.name, id, field.name).await;
    Some(match field.kind {
        Type::Link { .. } => read["__id"].clone(),
        _ => read,
    })
}

#[tokio::test]
async fn every_field_of_every_resource_is_kept_as_it_was_written() {
    on_clouds(|cloud| async move {
        let platform = Caller::Platform(SystemPurpose::Rules);
        let mut rows: HashMap<&str, i64> = HashMap::new();
        let tables = resources::v7().resources().iter();
        let tables: Vec<_> = tables.filter(|one| one.source == Source::Table).collect();
        let mut waiting = tables.clone();
        // First those whose links only need existing rows.
        while !waiting.is_empty() {
            let ready = |one: &&Resource| {
                one.fields.iter().all(|field| match field.kind {
                    Type::Link { to, .. } => field.nullable || field.owns || rows.contains_key(to),
                    _ => true,
                })
            };
            let at = waiting
                .iter()
                .position(ready)
                .expect("a resource that can be made");
            let resource = waiting.remove(at);
            // The catalogue has these, and they have only a few words.
            if resource.name == "cpu_architecture" {
                rows.insert(resource.name, 1);
                continue;
            }
            let mut body = json!({});
            for field in resource
                .fields
                .iter()
                .filter(|field| is_free(resource, field))
            {
                if let Some(value) = value(field, 40, &rows) {
                    body[field.name] = value;
                }
            }
            let id = cloud.made(&platform, resource.name, body.clone()).await;
            for field in &resource.fields {
                if let Some(written) = body.get(field.name)
                    && let Some(read) = read(&cloud, resource, id, field).await
                {
                    assert_eq!(read, *written, "{}.{}", resource.name, field.name);
                }
            }
            // Null where it can be null.
            let url = format!("/{}({id})", resource.name);
            for field in resource
                .fields
                .iter()
                .filter(|field| is_free(resource, field))
            {
                if field.nullable && body.get(field.name).is_some() {
                    cloud
                        .patch(&platform, &url, json!({field.name: null}))
                        .await
                        .unwrap();
                    if let Some(read) = read(&cloud, resource, id, field).await {
                        let kept_by_rules = field.name == "push_timestamp";
                        assert!(
                            read.is_null() || kept_by_rules,
                            "{}.{}",
                            resource.name,
                            field.name
                        );
                    }
                    let back = json!({field.name: body[field.name]});
                    cloud.patch(&platform, &url, back).await.unwrap();
                }
            }
            rows.insert(resource.name, id);
        }
        // All can be deleted again, those needed by others last.
        let mut left: Vec<_> = tables
            .iter()
            .filter(|one| rows.contains_key(one.name) && one.name != "cpu_architecture")
            .collect();
        for _ in 0..left.len() {
            let mut still = Vec::new();
            for resource in left {
                let url = format!("/{}({})", resource.name, rows[resource.name]);
                if cloud.delete(&platform, &url).await.is_err() && resource.name != "application" {
                    still.push(resource);
                }
            }
            left = still;
        }
        let left: Vec<_> = left.iter().map(|one| one.name).collect();
        assert_eq!(left, Vec::<&str>::new());
    })
    .await;
}
