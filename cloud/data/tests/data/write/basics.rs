//! Bodies, keys and filters (docs/spec/cloud.md#odata-writes).

use data::SystemPurpose;
use data::query::Caller;
use data::write::{Verb, WriteError};
use serde_json::json;

use super::cloud::{conflict, on_clouds, refused};

#[tokio::test]
async fn a_new_row_has_the_given_values_and_defaults_for_the_rest() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let row = &cloud
            .get(&cloud.ann, &format!("/application({fleet})"))
            .await[0];
        assert_eq!(row["app_name"], "pump");
        assert_eq!(row["slug"], "acme/pump");
        assert_eq!(row["is_of__class"], "fleet");
        assert_eq!(row["should_track_latest_release"], true);
        assert_eq!(row["is_public"], false);
        assert_eq!(row["uuid"].as_str().unwrap().len(), 32);
        assert!(row["actor"]["__id"].is_i64());
        assert_eq!(row["created_at"], row["modified_at"]);
    })
    .await;
}

#[tokio::test]
async fn unknown_and_read_only_fields_of_a_body_are_passed_over() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        cloud
            .set(
                &format!("/application({fleet})"),
                json!({"slug": "mine/own", "id": 99, "nonsense": 1, "is_archived": "true"}),
            )
            .await;
        assert_eq!(cloud.field("application", fleet, "slug").await, "acme/pump");
        assert_eq!(cloud.field("application", fleet, "is_archived").await, true);
        let url = format!("/application({fleet})");
        refused(
            cloud.patch(&cloud.ann, &url, json!({"nonsense": 1})).await,
            "none of the fields",
        );
        refused(
            cloud.patch(&cloud.ann, &url, json!({})).await,
            "names no field",
        );
        assert_eq!(
            cloud
                .patch(&cloud.ann, &url, json!({"slug": "x"}))
                .await
                .unwrap(),
            1
        );
    })
    .await;
}

#[tokio::test]
async fn errors_name_the_required_field_and_the_accepted_values() {
    on_clouds(|cloud| async move {
        let device = cloud.device(cloud.fleet("pump").await).await;
        let tag = |body| cloud.post(&cloud.ann, "device_tag", body);
        refused(tag(json!({})).await, "`device` is required");
        refused(
            tag(json!({"device": device, "tag_key": "a"})).await,
            "`value` is required",
        );
        refused(
            tag(json!({"device": device, "tag_key": "a b", "value": ""})).await,
            "`tag_key` must be a key without white space",
        );
        refused(
            tag(json!({"device": device, "tag_key": "io.platform.x", "value": ""})).await,
            "`tag_key` must be",
        );
        refused(
            tag(json!({"device": device, "tag_key": "a", "value": 7})).await,
            "`value` must be text",
        );
        tag(json!({"device": device.to_string(), "tag_key": "a", "value": ""}))
            .await
            .unwrap();
    })
    .await;
}

#[tokio::test]
async fn names_of_variables_are_those_of_their_kind() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let variable = |resource: &'static str, name: &'static str, value: &'static str| {
            let body = json!({"application": fleet, "name": name, "value": value});
            let cloud = cloud.clone();
            async move { cloud.post(&cloud.ann, resource, body).await }
        };
        let env = "application_environment_variable";
        let config = "application_config_variable";
        for name in [
            "1A",
            "A-B",
            "PLATFORM_A",
            "LEGACY_A",
            "USER",
            "PLATFORM",
            "A B",
        ] {
            refused(variable(env, name, "1").await, "`name` must be");
        }
        for name in ["A", "9A", ":PLATFORM_A", "PLATFORM_A-B"] {
            refused(variable(config, name, "1").await, "`name` must be");
        }
        refused(variable(env, "A", "1\n2").await, "`value` must be");
        variable(env, "_a1", "x y").await.unwrap();
        variable(config, "PLATFORM_HOST_CONFIG_x:y", "1")
            .await
            .unwrap();
        variable(config, "LEGACY_A", "").await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_duplicate_value_is_a_conflict_that_clients_recognize_by_its_message() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let tag = json!({"device": device, "tag_key": "place", "value": "a"});
        cloud.made(&cloud.ann, "device_tag", tag.clone()).await;
        conflict(
            cloud.post(&cloud.ann, "device_tag", tag).await,
            "\"device\" and \"tag_key\" must be unique.",
        );
        let uuid = cloud.field("device", device, "uuid").await;
        let again = json!({
            "belongs_to__application": fleet, "uuid": uuid,
            "is_of__device_type": cloud.board("raspberrypi4-64").await,
        });
        conflict(
            cloud.post(&cloud.ann, "device", again).await,
            "\"uuid\" must be unique.",
        );
    })
    .await;
}

#[tokio::test]
async fn a_filter_changes_every_row_that_it_holds_for() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        for name in ["A", "B", "C"] {
            let body = json!({"application": fleet, "name": name, "value": "1"});
            cloud
                .made(&cloud.ann, "application_environment_variable", body)
                .await;
        }
        let changed = cloud
            .patch(
                &cloud.ann,
                "/application_environment_variable?$filter=name ne 'B'",
                json!({"value": "2"}),
            )
            .await;
        assert_eq!(changed.unwrap(), 2);
        let none = cloud
            .patch(
                &cloud.ann,
                "/application_environment_variable?$filter=name eq 'Z'",
                json!({"value": "3"}),
            )
            .await;
        assert_eq!(none.unwrap(), 0);
        let all = cloud
            .delete(&cloud.ann, "/application_environment_variable?$filter=true")
            .await;
        assert_eq!(all.unwrap(), 3);
    })
    .await;
}

#[tokio::test]
async fn a_key_and_a_filter_hold_together() {
    on_clouds(|cloud| async move {
        let release = cloud
            .release_with(
                cloud.fleet("pump").await,
                "a1",
                json!({"status": "running"}),
            )
            .await;
        let cancel = format!("/release({release})?$filter=status eq 'running'");
        let body = json!({"status": "cancelled"});
        assert_eq!(
            cloud
                .patch(&cloud.ann, &cancel, body.clone())
                .await
                .unwrap(),
            1
        );
        assert_eq!(cloud.patch(&cloud.ann, &cancel, body).await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn nobody_changes_everything_by_leaving_out_key_and_filter() {
    on_clouds(|cloud| async move {
        cloud.fleet("pump").await;
        for verb in [Verb::Patch, Verb::Delete, Verb::Put] {
            let body = json!({"is_archived": true});
            let result = cloud.write(&cloud.ann, verb, "/application", body).await;
            assert!(
                matches!(result, Err(WriteError::Refused(_))),
                "{verb:?} {result:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_put_makes_a_row_or_replaces_it() {
    on_clouds(|cloud| async move {
        let device = cloud.device(cloud.fleet("pump").await).await;
        let url = format!("/device_tag(device={device},tag_key='place')");
        for value in ["here", "there"] {
            cloud
                .put(&cloud.ann, &url, json!({"value": value}))
                .await
                .unwrap();
            let rows = cloud
                .get(&cloud.ann, "/device_tag?$select=tag_key,value")
                .await;
            assert_eq!(rows, json!([{"tag_key": "place", "value": value}]));
        }
        let uuid = cloud.field("device", device, "uuid").await;
        let url = format!("/device(uuid='{}')", uuid.as_str().unwrap());
        cloud
            .set(&url, json!({"note": "x", "device_name": "named"}))
            .await;
        let board = cloud.board("raspberrypi4-64").await;
        let fleet = cloud
            .link("device", device, "belongs_to__application")
            .await;
        let body = json!({
            "is_of__device_type": board, "belongs_to__application": fleet, "local_id": "7",
        });
        cloud.put(&cloud.ann, &url, body).await.unwrap();
        assert_eq!(cloud.field("device", device, "note").await, json!(null));
        assert_eq!(cloud.field("device", device, "local_id").await, "7");
        assert_eq!(cloud.field("device", device, "device_name").await, "named");
    })
    .await;
}

#[tokio::test]
async fn a_change_updates_modified_at() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let made = cloud.field("application", fleet, "modified_at").await;
        cloud
            .set(
                &format!("/application({fleet})"),
                json!({"is_archived": true}),
            )
            .await;
        assert_ne!(cloud.field("application", fleet, "modified_at").await, made);
        assert_eq!(cloud.field("application", fleet, "created_at").await, made);
    })
    .await;
}

#[tokio::test]
async fn refused_requests_leave_nothing_behind() {
    on_clouds(|cloud| async move {
        let actors = cloud.count("actor").await;
        let fleet = cloud.fleet("pump").await;
        let again = json!({
            "app_name": "PUMP", "is_for__device_type": cloud.board("intel-nuc").await,
            "organization": cloud.link("application", fleet, "organization").await,
        });
        conflict(
            cloud.post(&cloud.ann, "application", again).await,
            "\"slug\" must be unique.",
        );
        assert_eq!(cloud.count("actor").await, actors + 1);
        cloud
            .delete(
                &Caller::Platform(SystemPurpose::Rules),
                &format!("/application({fleet})"),
            )
            .await
            .unwrap();
        assert_eq!(cloud.count("actor").await, actors);
    })
    .await;
}
