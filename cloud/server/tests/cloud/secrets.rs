//! Secrets: variables whose values can be read only by the devices that get them (here), and encryption in the
//! database.

mod at_rest;
mod service_credentials;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, on_both, read};
use crate::shop::{Device, Shop};

/// The beginning of every secret here.
pub(crate) const VALUE: &str = "k3ep-this";

/// Creates a secret variable of each kind; returns its resource, its id and its value.
pub(crate) async fn variables(
    shop: &Shop<'_>,
    device: &Device<'_>,
) -> Vec<(&'static str, i64, String)> {
    let ann = &shop.ann;
    let path = format!(
        "/v7/service_install?$select=id&$filter=device eq {}",
        device.id
    );
    let install = ann.rows(&path).await[0]["id"].clone();
    let image = ann.rows("/v7/release_image?$select=id").await[0]["id"].clone();
    let (fleet, service, device) = (shop.fleet, shop.services[0], device.id);
    let mut made = Vec::new();
    for (resource, of, owner, name) in [
        (
            "application_environment_variable",
            "application",
            json!(fleet),
            "OF_FLEET",
        ),
        (
            "application_config_variable",
            "application",
            json!(fleet),
            "PLATFORM_OF_FLEET",
        ),
        (
            "service_environment_variable",
            "service",
            json!(service),
            "OF_SERVICE",
        ),
        (
            "image_environment_variable",
            "release_image",
            image,
            "OF_IMAGE",
        ),
        (
            "device_environment_variable",
            "device",
            json!(device),
            "OF_DEVICE",
        ),
        (
            "device_config_variable",
            "device",
            json!(device),
            "PLATFORM_OF_DEVICE",
        ),
        (
            "device_service_environment_variable",
            "service_install",
            install,
            "OF_INSTALL",
        ),
    ] {
        let value = format!("{VALUE}-{resource}");
        let body = json!({ of: owner, "name": name, "value": value, "is_secret": true });
        let path = format!("/v7/{resource}?returnResource=true");
        let (status, row) = ann.send(Method::POST, &path, body).await;
        assert_eq!(status, StatusCode::CREATED, "{row}");
        assert_eq!(
            (&row["value"], &row["is_secret"]),
            (&Value::Null, &json!(true)),
            "{row}"
        );
        made.push((resource, row["id"].as_i64().expect("an id"), value));
    }
    made
}

/// Returns the state of a device as the device receives it, and its ETag.
async fn state(device: &Device<'_>) -> (String, String) {
    let (state, tag) = device.state().await;
    (state.to_string(), tag)
}

#[tokio::test]
async fn secret_variables_are_given_to_their_devices_and_shown_to_nobody() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let variables = variables(&shop, &device).await;
        let (given, tag) = state(&device).await;
        for (resource, _, value) in &variables {
            assert!(given.contains(value), "{resource}: {given}");
        }
        let older = format!("/device/v2/{}/state", device.uuid);
        let (_, given) = device.signed.get(&older).await;
        assert!(given.to_string().contains(VALUE), "{given}");

        // People can see that it exists.
        let v3 = format!("/device/v3/{}/state", device.uuid);
        let of_fleet = format!("/device/v3/fleet/{}/state", shop.uuid);
        for path in [&v3, &older, &of_fleet] {
            let answer = shop
                .ann
                .ask(Method::GET, path)
                .header("if-none-match", &tag);
            let answer = answer.send().await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::OK, "{path}");
            assert_ne!(
                answer.headers()["etag"],
                tag.as_str(),
                "{path}: tells whether a guess is right"
            );
            let (_, shown) = read(answer).await;
            let shown = shown.to_string();
            assert!(
                shown.contains("\"OF_FLEET\":\"(secret)\""),
                "{path}: {shown}"
            );
            assert!(!shown.contains(VALUE), "{path}: {shown}");
        }
        let (status, given) = device.signed.get(&of_fleet).await;
        assert_eq!(status, StatusCode::OK);
        assert!(given.to_string().contains(VALUE), "{given}");

        let shows_nothing = async |who: &ApiCaller<'_>, path: &str| {
            let (status, answer) = who.get(path).await;
            assert_eq!(status, StatusCode::OK, "{path}: {answer}");
            assert!(!answer.to_string().contains(VALUE), "{path}: {answer}");
        };
        for (resource, id, _) in &variables {
            for version in ["v1", "v5", "v6", "v7"] {
                for who in [&shop.ann, &device.signed] {
                    let all = format!("/{version}/{resource}");
                    shows_nothing(who, &all).await;
                    shows_nothing(who, &format!("{all}({id})?$select=value")).await;
                    shows_nothing(who, &format!("{all}?$orderby=value desc")).await;
                }
            }
        }
        shows_nothing(&shop.ann, "/v7/audit_event").await;
    })
    .await;
}

#[tokio::test]
async fn secret_variables_stay_secret_regardless_of_the_writer() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let variables = variables(&shop, &device).await;
        for (number, (resource, id, _)) in variables.iter().enumerate() {
            for version in ["v5", "v6", "v7"] {
                let value = format!("{VALUE}-{version}-{number}");
                let path = format!("/{version}/{resource}({id})");
                let body = json!({ "value": value });
                let (status, answer) = shop.ann.send(Method::PATCH, &path, body).await;
                assert_eq!(status, StatusCode::OK, "{path}: {answer}");
                assert!(state(&device).await.0.contains(&value), "{path}");
                let row = &shop.ann.rows(&format!("/v7/{resource}({id})")).await[0];
                assert_eq!(row["value"], Value::Null, "{row}");
                let open = json!({ "is_secret": false });
                let (status, answer) = shop.ann.send(Method::PATCH, &path, open).await;
                assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {answer}");
            }
            let path = format!("/v7/{resource}({id})");
            let open = json!({ "is_secret": false, "value": "open" });
            let (status, answer) = shop.ann.send(Method::PATCH, &path, open).await;
            assert_eq!(status, StatusCode::OK, "{path}: {answer}");
            let row = &shop.ann.rows(&path).await[0];
            assert_eq!(row["value"], "open", "{row}");
        }
        let (given, _) = state(&device).await;
        assert!(!given.contains(VALUE), "{given}");
    })
    .await;
}
