//! Variables whose value can be read only by the devices that receive it.

use data::SystemPurpose;
use data::query::Caller;
use data::write::{Verb, WriteOutcome};
use serde_json::{Value, json};

use super::cloud::{Cloud, on_clouds, refused};

const SECRET: &str = "s3cret";

/// Creates a secret variable of each kind that has them; returns its resource, its id, its link to its owner, and
/// another owner.
async fn variables(cloud: &Cloud) -> Vec<(&'static str, i64, &'static str, Value)> {
    let mut owners = Vec::new();
    for name in ["pump", "valve"] {
        let fleet = cloud.fleet(name).await;
        let device = cloud.device(fleet).await;
        let release = cloud.release(fleet, "aa").await;
        let service = cloud.service_in(release, "main").await;
        let body = json!({"should_be_running__release": release});
        cloud.set(&format!("/application({fleet})"), body).await;
        let url = format!("/service_install?$select=id&$filter=device eq {device}");
        let install = cloud.get(&cloud.ann, &url).await[0]["id"].clone();
        let url = format!("/release_image?$select=id&$filter=is_part_of__release eq {release}");
        let image = cloud.get(&cloud.ann, &url).await[0]["id"].clone();
        owners.push([json!(fleet), json!(service), image, json!(device), install]);
    }
    let mut made = Vec::new();
    for (resource, of, owner, name) in [
        ("application_environment_variable", "application", 0, "A"),
        (
            "application_config_variable",
            "application",
            0,
            "PLATFORM_A",
        ),
        ("service_environment_variable", "service", 1, "A"),
        ("image_environment_variable", "release_image", 2, "A"),
        ("device_environment_variable", "device", 3, "A"),
        ("device_config_variable", "device", 3, "PLATFORM_A"),
        (
            "device_service_environment_variable",
            "service_install",
            4,
            "A",
        ),
    ] {
        let body = json!({of: owners[0][owner], "name": name, "value": SECRET, "is_secret": true});
        let id = cloud.made(&cloud.ann, resource, body).await;
        made.push((resource, id, of, owners[1][owner].clone()));
    }
    made
}

#[tokio::test]
async fn secret_values_are_found_by_no_question() {
    on_clouds(|cloud| async move {
        let variables = variables(&cloud).await;
        let key = cloud.device_key(1).await;
        for (resource, id, of, _) in &variables {
            let shown = cloud.get(&cloud.ann, &format!("/{resource}")).await;
            assert_eq!(shown[0]["value"], Value::Null, "{shown}");
            assert_eq!(shown[0]["is_secret"], true, "{shown}");
            for caller in [&cloud.ann, &key, &Caller::Platform(SystemPurpose::Rules)] {
                for question in [
                    "value eq 's3cret'",
                    "value ne null",
                    "value in ('s3cret','x')",
                    "startswith(value,'s')",
                    "endswith(value,'t')",
                    "contains(value,'3')",
                    "length(value) eq 6",
                    "length(value) gt 0",
                    "indexof(value,'3') eq 1",
                    "value gt 'a'",
                    "value lt 'z'",
                    "concat(value,'x') eq 's3cretx'",
                    "substring(value,0,1) eq 's'",
                    "tolower(value) eq 's3cret'",
                    "replace(value,'3','e') eq 'secret'",
                    "is_secret eq true and value eq 's3cret'",
                    "name eq value or not (value eq null)",
                ] {
                    let url = format!("/{resource}/$count?$filter={question}");
                    assert_eq!(cloud.get(caller, &url).await, 0, "{caller:?} {url}");
                }
                // Through links, from its owner.
                let url = format!("/{resource}({id})?$select={of}&$expand={of}($select=id)");
                let owner = cloud.get(caller, &url).await;
                assert_eq!(owner.as_array().map(Vec::len), Some(1), "{caller:?} {url}");
            }
            // Sorting reveals nothing: the secret one is placed with those without a value, whatever it is.
            let order = format!("/{resource}?$select=id,value&$orderby=value asc");
            let listed = cloud.get(&cloud.ann, &order).await;
            assert_eq!(listed, json!([{"id": id, "value": null}]));
        }
        for url in [
            "/device?$select=id&$expand=device_environment_variable($select=value;$filter=value eq 's3cret')",
            "/device?$select=id&$expand=device_environment_variable($select=value)",
            "/device?$select=id&$expand=device_config_variable",
            "/device?$select=id&$filter=device_environment_variable/any(v:v/value eq 's3cret')",
            "/device?$select=id&$filter=device_environment_variable/any(v:startswith(v/value,'s3'))",
            "/device?$select=id&$filter=device_environment_variable/$count($filter=value eq 's3cret') eq 1",
            "/application?$select=id&$expand=application_environment_variable,application_config_variable",
            "/application?$select=id&$filter=application_environment_variable/any(v:v/value ne null)",
            "/service?$select=id&$expand=service_environment_variable",
            "/service_install?$select=id&$expand=device_service_environment_variable",
            "/release_image?$select=id&$expand=image_environment_variable",
        ] {
            let answer = cloud.get(&cloud.ann, url).await.to_string();
            assert!(!answer.contains(SECRET), "{url}: {answer}");
            if url.contains("/any(") || url.contains("/$count") {
                assert_eq!(answer, "[]", "{url}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn secret_values_are_overwritten_and_never_shown() {
    on_clouds(|cloud| async move {
        for (resource, id, of, other) in variables(&cloud).await {
            let url = format!("/{resource}({id})");
            let row = || async {
                cloud
                    .get(&cloud.ann, &format!("{url}?$select=value,is_secret"))
                    .await
            };
            let secret = json!([{"value": null, "is_secret": true}]);
            let patch = |body: Value| cloud.patch(&cloud.ann, &url, body);

            refused(
                patch(json!({"is_secret": false})).await,
                "together with a new `value`",
            );
            refused(patch(json!({"value": null})).await, "null");
            refused(
                patch(json!({"value": null, "is_secret": false})).await,
                "null",
            );
            // It cannot be moved to somebody else's device by changing its link either.
            refused(
                patch(json!({of: other})).await,
                "together with a new `value`",
            );
            assert_eq!(
                patch(json!({"value": "n3w"}))
                    .await
                    .expect("the administrator may"),
                1
            );
            assert_eq!(row().await, secret, "{resource}");
            // A PUT that does not know about the flag.
            let name = cloud.field(resource, id, "name").await;
            let owner = cloud.link(resource, id, of).await;
            let key = format!(
                "/{resource}({of}={owner},name='{}')",
                name.as_str().expect("a name")
            );
            assert_eq!(
                cloud
                    .put(&cloud.ann, &key, json!({"value": "n3wer"}))
                    .await
                    .expect("the administrator may"),
                1
            );
            assert_eq!(row().await, secret, "{resource}");
            // Many rows at once.
            let all = format!("/{resource}?$filter=true");
            refused(
                cloud
                    .patch(&cloud.ann, &all, json!({"is_secret": false}))
                    .await,
                "together with a new `value`",
            );
            assert_eq!(
                cloud
                    .patch(&cloud.ann, &all, json!({"value": "all"}))
                    .await
                    .expect("the administrator may"),
                1
            );
            assert_eq!(row().await, secret, "{resource}");
            let guess = format!("{all} and value eq 'all'");
            let body = json!({"value": "x"});
            let written = cloud.write(&cloud.ann, Verb::Patch, &guess, body).await;
            assert!(
                matches!(written, Ok(WriteOutcome::Changed(0))),
                "{resource}"
            );

            assert_eq!(
                patch(json!({"value": "open", "is_secret": false}))
                    .await
                    .expect("the administrator may"),
                1
            );
            assert_eq!(row().await, json!([{"value": "open", "is_secret": false}]));
            assert_eq!(
                patch(json!({"is_secret": true}))
                    .await
                    .expect("the administrator may"),
                1
            );
            assert_eq!(row().await, secret, "{resource}");
            assert_eq!(
                patch(json!({of: other, "value": "moved"}))
                    .await
                    .expect("the administrator may"),
                1
            );
            assert_eq!(row().await, secret, "{resource}");
        }
    })
    .await;
}

#[tokio::test]
async fn settings_that_the_cloud_tells_of_are_not_secret() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let name = "PLATFORM_SUPERVISOR_VPN_CONTROL";
        let body = json!({"application": fleet, "name": name, "value": "false", "is_secret": true});
        let made = cloud.post(&cloud.ann, "application_config_variable", body).await;
        refused(made, "cannot be secret");
        let body = json!({"application": fleet, "name": "PLATFORM_X", "value": "false", "is_secret": true});
        let id = cloud.made(&cloud.ann, "application_config_variable", body).await;
        let url = format!("/application_config_variable({id})");
        let renamed = cloud.patch(&cloud.ann, &url, json!({"name": name})).await;
        refused(renamed, "cannot be secret");
        // No device would receive it.
        let body = json!({"application": fleet, "name": "A", "value": "x", "is_secret": true});
        let build = cloud.made(&cloud.ann, "build_environment_variable", body).await;
        assert_eq!(cloud.field("build_environment_variable", build, "value").await, "x");
    })
    .await;
}

#[tokio::test]
async fn secret_values_are_not_in_the_audit_log() {
    on_clouds(|cloud| async move {
        variables(&cloud).await;
        let events = cloud
            .get(
                &Caller::Platform(SystemPurpose::Rules),
                "/audit_event?$filter=endswith(resource,'_variable')",
            )
            .await;
        assert!(!events.to_string().contains(SECRET), "{events}");
        let fields = events[0]["fields"].to_string();
        assert!(fields.contains("is_secret"), "{fields}");
    })
    .await;
}
