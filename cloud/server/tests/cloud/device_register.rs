//! `POST /device/register` (docs/spec/cloud.md#device-register).

use data::testing::sql;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{on_both, read};
use crate::shop::{Shop, uuid};

#[tokio::test]
async fn a_device_registers_and_has_its_key_its_name_and_its_services() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let by_key = cloud.by(shop.key.clone());
        let body = json!({
            "application": shop.fleet.to_string(), "device_type": "raspberrypi4-64", "uuid": uuid(1),
            "user": null, "api_key": null, "supervisor_version": "1.2.3", "os_version": "Platform OS 2.88.4",
            "os_variant": "prod", "mac_address": "00:11:22:33:44:55",
        });
        let (status, made) = by_key.send(Method::POST, "/device/register", body).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        assert_eq!(made["uuid"], json!(uuid(1)));
        let key = made["api_key"].as_str().expect("a key").to_owned();
        assert_eq!(key.len(), 32);

        let path = format!("/v7/device(uuid='{}')?$expand=service_install", uuid(1));
        let row = shop.ann.rows(&path).await.remove(0);
        assert_eq!(row["id"], made["id"]);
        assert!(row["device_name"].as_str().expect("a name").contains('-'), "{row}");
        for (field, value) in [
            ("supervisor_version", "1.2.3"),
            ("os_version", "Platform OS 2.88.4"),
            ("os_variant", "prod"),
            ("mac_address", "00:11:22:33:44:55"),
            ("api_heartbeat_state", "unknown"),
        ] {
            assert_eq!(row[field], json!(value), "{field}");
        }
        assert_eq!(row["service_install"].as_array().expect("rows").len(), 2, "{row}");

        // The key exchange of a device that is already registered
        // (docs/spec/device.md#provisioning).
        let of_device = cloud.by(key);
        let (_, who) = of_device.get("/actor/v1/whoami").await;
        assert_eq!(who["actorTypeId"], made["id"], "{who}");
        let path = format!("/v7/device?$select=id&$filter=uuid eq '{}'", uuid(1));
        assert_eq!(of_device.rows(&path).await, [json!({ "id": made["id"] })]);
    })
    .await;
}

#[tokio::test]
async fn invalid_registrations_are_refused_with_the_messages_that_devices_recognize() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let other = Shop::named(&cloud, "other").await;
        let by_key = cloud.by(shop.key.clone());
        shop.device(1).await;
        let good = json!({
            "application": shop.fleet, "device_type": "raspberrypi4-64", "uuid": uuid(2),
            "api_key": "0123456789abcdef",
        });
        let with = |changes: Value| {
            let mut body = good.clone();
            for (name, value) in changes.as_object().expect("an object") {
                body[name] = value.clone();
            }
            body
        };
        for (changes, status) in [
            (json!({ "application": null }), 400),
            (json!({ "application": "x" }), 400),
            (json!({ "application": 1.5 }), 400),
            (json!({ "application": {} }), 400),
            (json!({ "device_type": null }), 400),
            (json!({ "device_type": 7 }), 400),
            (json!({ "uuid": null }), 400),
            (json!({ "uuid": "" }), 400),
            (json!({ "uuid": "ABC" }), 400),
            (json!({ "api_key": "short" }), 400),
            (json!({ "api_key": 1 }), 400),
            (json!({ "device_type": "toaster" }), 404),
            (json!({ "application": 99_999 }), 401),
            (json!({ "application": other.fleet }), 401),
            (json!({ "application": other.fleet, "uuid": uuid(1) }), 401),
            (json!({ "supervisor_version": "1.2.3" }), 403),
        ] {
            let body = with(changes.clone());
            let (got, answer) = by_key.send(Method::POST, "/device/register", body).await;
            assert_eq!(got.as_u16(), status, "{changes}: {answer}");
        }
        for (changes, text) in [
            (json!({ "uuid": uuid(1) }), "\"uuid\" must be unique."),
            (
                json!({ "api_key": "key-of-device-00001" }),
                "\"api_key\" must be unique.",
            ),
        ] {
            let request = by_key
                .ask(Method::POST, "/device/register")
                .json(&with(changes.clone()));
            let answer = request.send().await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::CONFLICT, "{changes}");
            assert!(
                answer.headers()["content-type"]
                    .to_str()
                    .expect("text")
                    .starts_with("text/plain")
            );
            assert_eq!(answer.text().await.expect("a body"), text);
        }
        // Nothing that was refused was created.
        let count = shop.ann.get("/v7/device/$count").await.1;
        assert_eq!(count, json!({ "d": 1 }));
        let (status, _) = by_key
            .send(Method::POST, "/device/register", good.clone())
            .await;
        assert_eq!(status, StatusCode::CREATED);

        // Only keys can register devices: also keys of users, but never those of devices.
        let third = with(json!({ "uuid": uuid(3), "api_key": null }));
        let (status, _) = shop
            .ann
            .send(Method::POST, "/device/register", third.clone())
            .await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "a session");
        let nobody = cloud.ask(Method::POST, "/device/register").json(&third);
        let (status, _) = read(nobody.send().await.expect("an answer")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "nobody");
        let of_device = cloud.by("key-of-device-00001".to_owned());
        let (status, _) = of_device
            .send(Method::POST, "/device/register", third.clone())
            .await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "a device");
        let named = json!({ "name": "ci" });
        let (_, key) = shop
            .ann
            .send(Method::POST, "/api-key/user/full", named)
            .await;
        let of_user = cloud.by(key.as_str().expect("a key").to_owned());
        let (status, _) = of_user.send(Method::POST, "/device/register", third).await;
        assert_eq!(status, StatusCode::CREATED, "a key of a user");
    })
    .await;
}

#[tokio::test]
async fn the_type_of_a_fleet_may_ask_for_versions_of_the_operating_system() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let range = sql("UPDATE application_type SET needs__os_version_range = '>=2.11.0'");
        assert!(shop.execute(range).await > 0);
        let by_key = cloud.by(shop.key.clone());
        for (number, os_version, status) in [
            (1, "Platform OS 2.3.0", 403),
            (2, "Platform OS 2.88.4", 201),
        ] {
            let body = json!({
                "application": shop.fleet, "device_type": "raspberrypi4-64", "uuid": uuid(number),
                "os_version": os_version, "supervisor_version": "1.2.3",
            });
            let (got, answer) = by_key.send(Method::POST, "/device/register", body).await;
            assert_eq!(got.as_u16(), status, "{os_version}: {answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn concurrent_registrations_of_one_device_create_it_once() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let one = || async {
            let body = json!({
                "application": shop.fleet, "device_type": "raspberrypi4-64", "uuid": uuid(1),
            });
            let by_key = cloud.by(shop.key.clone());
            by_key.send(Method::POST, "/device/register", body).await.0
        };
        let answers = futures::future::join_all((0..8).map(|_| one())).await;
        let made = answers
            .iter()
            .filter(|status| **status == StatusCode::CREATED)
            .count();
        let conflicts = answers
            .iter()
            .filter(|status| **status == StatusCode::CONFLICT)
            .count();
        assert_eq!((made, conflicts), (1, 7), "{answers:?}");
    })
    .await;
}
