//! How much an organization may keep, and its devices.

use std::time::Duration;

use data::testing::on_fresh;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Cloud, Signed, read};
use crate::shop::{Shop, uuid};

const SMALL: &str = "[quotas]\nfleets = 2\ndevices = 2\nreleases = 2\nrelease_assets = 2\n\
                     release_asset_bytes = 100\ntags = 2\ntag_bytes = 1000\nvariables = 2\nvariable_bytes = 1000";

/// It is refused, and told by which quota and what can be done.
fn refused((status, why): (StatusCode, Value), quota: &str) {
    assert_eq!(status, StatusCode::FORBIDDEN, "{quota}: {why}");
    let why = why.to_string();
    for part in [&format!("quota `{quota}`"), "administrator of the cloud"] {
        assert!(why.contains(part), "{why}");
    }
}

async fn usage(by: &Signed<'_>, organization: i64, quota: &str) -> Value {
    let path = format!("/cloud/v1/organization/{organization}/quotas");
    let (status, all) = by.get(&path).await;
    assert_eq!(status, StatusCode::OK, "{all}");
    let all = all["quotas"].as_array().expect("a list");
    let found = all.iter().find(|one| one["name"] == quota);
    found.expect(quota).clone()
}

async fn organization(by: &Signed<'_>) -> i64 {
    let rows = by.rows("/v7/application?$select=organization&$top=1").await;
    rows[0]["organization"]["__id"]
        .as_i64()
        .expect("an organization")
}

#[tokio::test]
async fn m12_an_organization_has_quotas_that_an_administrator_of_the_cloud_changes() {
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, SMALL).await;
        let shop = Shop::open(&cloud).await;
        let ann = &shop.ann;
        let of = organization(ann).await;
        for number in 1..=2 {
            shop.device(number).await;
        }
        let body = json!({
            "application": shop.fleet, "device_type": "raspberrypi4-64", "uuid": uuid(3), "api_key": "0123456789abcdef0123456789abcdef",
        });
        let register = async |body: Value| {
            let by = cloud.by(shop.key.clone());
            by.send(Method::POST, "/device/register", body).await
        };
        refused(register(body.clone()).await, "devices");
        let row = json!({ "belongs_to__application": shop.fleet, "uuid": uuid(4) });
        let (status, why) = ann.send(Method::POST, "/v7/device", row).await;
        assert!(status.is_client_error(), "{why}");
        ann.fleet("second", "raspberrypi4-64").await;
        let types = ann.rows("/v7/device_type(slug='raspberrypi4-64')?$select=id").await;
        let fleet = json!({ "app_name": "third", "organization": of, "is_for__device_type": types[0]["id"] });
        refused(ann.send(Method::POST, "/v7/application", fleet.clone()).await, "fleets");
        assert_eq!(
            usage(ann, of, "devices").await,
            json!({ "name": "devices", "limit": 2, "is_default": true, "used": 2 })
        );

        // Files count by their bytes.
        let upload = async |length: usize| {
            let text = |name: &str, value: &str| {
                format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
            };
            let head = "content-disposition: form-data; name=\"asset\"; filename=\"x\"";
            let release = text("release", &shop.release.id.to_string());
            let key = text("asset_key", &format!("of {length}"));
            let body = format!("{release}{key}--b\r\n{head}\r\n\r\n{}\r\n--b--\r\n", "x".repeat(length));
            let request = ann.ask(Method::POST, "/v7/release_asset").body(body);
            let request = request.header("content-type", "multipart/form-data; boundary=b");
            ann.answer(request).await
        };
        let (status, why) = upload(60).await;
        assert_eq!(status, StatusCode::CREATED, "{why}");
        refused(upload(41).await, "release_asset_bytes");
        assert_eq!(usage(ann, of, "release_asset_bytes").await["used"], json!(60));

        // People see it where they see the fleet.
        let shown = crate::dashboard::session::cookie(&cloud).await;
        let place = format!("/dashboard/fleets/{}/settings", shop.fleet);
        let (_, shown) = crate::dashboard::session::page(&cloud, &shown, &place).await;
        assert!(shown.contains("Quotas") && shown.contains("Variables of a device"), "{shown}");

        // Who is no administrator of the cloud changes none, who is no member sees none.
        let path = format!("/cloud/v1/organization/{of}/quotas");
        let device = cloud.by(shop.key.clone());
        let (status, _) = device.send(Method::PATCH, &path, json!({ "devices": 9 })).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        let guest = cloud.ask(Method::GET, &path).send().await.expect("an answer");
        assert_eq!(guest.status(), StatusCode::UNAUTHORIZED);
        for (wrong, named) in [
            (json!({ "nonsense": 1 }), "release_assets"),
            (json!({ "devices": -1 }), "`devices`"),
            (json!({ "devices": "9" }), "`devices`"),
        ] {
            let (status, why) = ann.send(Method::PATCH, &path, wrong).await;
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert!(why.to_string().contains(named), "{why}");
        }
        let (status, all) = ann.send(Method::PATCH, &path, json!({ "devices": 3, "fleets": 5 })).await;
        assert_eq!(status, StatusCode::OK, "{all}");
        let (status, made) = register(body).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let (status, made) = ann.send(Method::POST, "/v7/application", fleet).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        assert_eq!(
            usage(ann, of, "devices").await,
            json!({ "name": "devices", "limit": 3, "is_default": false, "used": 3 })
        );
        let (_, _) = ann.send(Method::PATCH, &path, json!({ "devices": null })).await;
        assert_eq!(usage(ann, of, "devices").await["limit"], json!(2));
    })
    .await;
}

#[tokio::test]
async fn m12_a_devices_key_writes_no_more_tags_and_variables_than_its_quota() {
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, SMALL).await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let tag =
            |key: &str, value: &str| json!({ "device": device.id, "tag_key": key, "value": value });
        let variable =
            |name: &str, value: &str| json!({ "device": device.id, "name": name, "value": value });
        for name in ["A", "B"] {
            shop.ann.create("device_tag", tag(name, "x")).await;
            shop.ann
                .create("device_environment_variable", variable(name, "x"))
                .await;
        }
        let by = &shop.ann;
        refused(
            by.send(Method::POST, "/v7/device_tag", tag("C", "x")).await,
            "tags",
        );
        let path = "/v7/device_environment_variable";
        refused(
            by.send(Method::POST, path, variable("C", "x")).await,
            "variables",
        );
        // What is there does not grow beyond it either.
        let long = json!({ "value": "x".repeat(1001) });
        let filter = format!("?$filter=device%20eq%20{}", device.id);
        refused(
            by.send(
                Method::PATCH,
                &format!("/v7/device_tag{filter}"),
                long.clone(),
            )
            .await,
            "tag_bytes",
        );
        refused(
            by.send(Method::PATCH, &format!("{path}{filter}"), long)
                .await,
            "variable_bytes",
        );
        let tags = json!([{ "key": "D", "value": "x" }]);
        let answer = device
            .signed
            .ask(Method::PATCH, "/device/v3/tags")
            .json(&tags);
        let (status, why) = read(answer.send().await.expect("an answer")).await;
        assert!(status.is_client_error(), "{why}");
        let rows = by
            .rows(&format!("/v7/device_tag{filter}&$select=value"))
            .await;
        assert_eq!(rows, [json!({ "value": "x" }), json!({ "value": "x" })]);
    })
    .await;
}

#[tokio::test]
async fn m12_who_may_change_no_release_uploads_nothing_into_the_database() {
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "registration = 'open'").await;
        let shop = Shop::open(&cloud).await;
        let given = json!({ "username": "mallory", "email": "m@other.example", "password": "battery horse staple" });
        let made = cloud.ask(Method::POST, "/user/register").json(&given).send().await;
        let token = made.expect("an answer").text().await.expect("a token");
        let mallory = cloud.by(token);
        // The answer comes before the file has, which never ends.
        for fields in ["", "--b\r\ncontent-disposition: form-data; name=\"release\"\r\n\r\nRELEASE\r\n"] {
            let fields = fields.replace("RELEASE", &shop.release.id.to_string());
            let begun = format!(
                "{fields}--b\r\ncontent-disposition: form-data; name=\"asset\"; filename=\"x\"\r\n\r\n"
            );
            let piece = bytes::Bytes::from(vec![b'x'; 64 << 10]);
            let endless = futures::stream::iter(
                [Ok::<_, std::io::Error>(bytes::Bytes::from(begun))].into_iter().chain(std::iter::repeat_with(move || Ok(piece.clone())).take(100)),
            );
            let endless = futures::StreamExt::chain(endless, futures::stream::pending());
            let request = mallory
                .ask(Method::POST, "/v7/release_asset")
                .header("content-type", "multipart/form-data; boundary=b")
                .body(reqwest::Body::wrap_stream(endless));
            let answer = tokio::time::timeout(Duration::from_secs(30), request.send()).await;
            // A client that is still sending may see the connection end instead.
            if let Ok(answer) = answer.expect("an answer before the end") {
                assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
            }
            let kept = data::testing::sql("DELETE FROM release_asset_piece WHERE id > 0");
            assert_eq!(shop.execute(kept).await, 0);
        }
    })
    .await;
}
