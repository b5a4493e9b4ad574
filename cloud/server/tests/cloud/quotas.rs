//! Quotas of an organization and of its devices.

use data::testing::on_fresh;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, Cloud, PASSWORD, PATIENCE, read};
use crate::shop::{Shop, uuid};

const SMALL: &str = "[quotas]\nfleets = 2\ndevices = 2\nreleases = 2\nrelease_assets = 2\n\
                     release_asset_bytes = 100\ntags = 2\ntag_bytes = 1000\nvariables = 2\nvariable_bytes = 1000";

/// Checks that a request is refused, with the name of the quota and possible remedies.
fn refused((status, why): (StatusCode, Value), quota: &str) {
    assert_eq!(status, StatusCode::FORBIDDEN, "{quota}: {why}");
    let why = why.to_string();
    for part in [&format!("quota `{quota}`"), "administrator of the cloud"] {
        assert!(why.contains(part), "{why}");
    }
}

async fn usage(by: &ApiCaller<'_>, organization: i64, quota: &str) -> Value {
    let path = format!("/cloud/v1/organization/{organization}/quotas");
    let (status, all) = by.get(&path).await;
    assert_eq!(status, StatusCode::OK, "{all}");
    let all = all["quotas"].as_array().expect("a list");
    let found = all.iter().find(|one| one["name"] == quota);
    found.expect(quota).clone()
}

async fn organization(by: &ApiCaller<'_>) -> i64 {
    let rows = by.rows("/v7/application?$select=organization&$top=1").await;
    rows[0]["organization"]["__id"]
        .as_i64()
        .expect("an organization")
}

#[tokio::test]
async fn an_organization_has_quotas_that_an_administrator_of_the_cloud_changes() {
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

        // Files count in bytes.
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

        // People see it on the page of the fleet.
        let shown = crate::dashboard::session::cookie(&cloud).await;
        let place = format!("/dashboard/fleets/{}/settings", shop.fleet);
        let (_, shown) = crate::dashboard::session::page(&cloud, &shown, &place).await;
        assert!(shown.contains("Quotas") && shown.contains("Variables of a device"), "{shown}");

        // Only administrators of the cloud can change quotas, and only members can see them.
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
async fn a_devices_key_writes_no_more_tags_and_variables_than_its_quota() {
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
        // Existing rows cannot grow beyond the quota either.
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
async fn a_user_who_may_not_change_releases_cannot_upload_into_the_database() {
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "registration = 'open'").await;
        let shop = Shop::open(&cloud).await;
        let mallory = cloud.register("mallory").await;
        // The answer arrives before the file, which never ends.
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
            let answer = tokio::time::timeout(PATIENCE, request.send()).await;
            // A client that is still sending may see the end of the connection instead.
            if let Ok(answer) = answer.expect("an answer before the end") {
                assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
            }
            let kept = data::testing::sql("DELETE FROM release_asset_piece WHERE id > 0");
            assert_eq!(shop.execute(kept).await, 0);
        }
    })
    .await;
}

/// Creates one of every kind; the next one is refused with its name.
#[tokio::test]
async fn all_other_growing_tables_have_quotas() {
    on_fresh(async |url| {
        let settings = "registration = 'open'\n[quotas]\nservices = 3\nimages = 3\nmembers = 1\ninvites = 1\n\
                        teams = 1\nvariables = 1\nkeys = 2\npublic_keys = 1\norganizations = 5";
        let cloud = Cloud::start_with(&url, settings).await;
        let shop = Shop::open(&cloud).await;
        let by = &shop.ann;
        let of = organization(by).await;
        let now = "2026-11-21T10:00:00Z";
        let service = |name: &str| json!({ "application": shop.fleet, "service_name": name });
        by.create("service", service("third")).await;
        refused(by.send(Method::POST, "/v7/service", service("fourth")).await, "services");
        let image = json!({
            "is_a_build_of__service": shop.services[0], "start_timestamp": now, "status": "running",
        });
        by.create("image", image.clone()).await;
        refused(by.send(Method::POST, "/v7/image", image).await, "images");
        let team = |name: &str| json!({ "name": name, "belongs_to__organization": of });
        by.create("team", team("one")).await;
        refused(by.send(Method::POST, "/v7/team", team("two")).await, "teams");
        let invite = |who: &str| json!({ "invitee": who, "is_invited_to__organization": of });
        let eve = cloud.register("eve").await;
        let (_, row) = by.send(Method::POST, "/v7/organization_invite", invite("eve@other.example")).await;
        let token = row["invitation_token"].as_str().expect("a token").to_owned();
        refused(by.send(Method::POST, "/v7/organization_invite", invite("c@b.example")).await, "invites");
        let invite = |who: &str| json!({ "invitee": who, "is_invited_to__application": shop.fleet });
        by.create("application_invite", invite("a@b.example")).await;
        refused(by.send(Method::POST, "/v7/application_invite", invite("c@b.example")).await, "invites");
        // Anybody who accepts is one too many.
        let path = format!("/user/v1/invitation/{token}");
        refused(eve.answer(eve.ask(Method::POST, &path)).await, "members");

        let parts = by.rows("/v7/release_image?$select=id").await;
        let part = parts[0]["id"].clone();
        for (resource, owner, of, name) in [
            ("image_environment_variable", "release_image", part.clone(), "name"),
            ("image_label", "release_image", part, "label_name"),
            ("service_label", "service", json!(shop.services[0]), "label_name"),
            ("build_environment_variable", "application", json!(shop.fleet), "name"),
        ] {
            let row = |called: &str| json!({ owner: of, name: called, "value": "x" });
            by.create(resource, row("A")).await;
            refused(by.send(Method::POST, &format!("/v7/{resource}"), row("B")).await, "variables");
        }
    })
    .await;
}

#[tokio::test]
async fn keys_ssh_keys_and_organizations_of_a_user_are_bounded() {
    on_fresh(async |url| {
        let settings = "registration = 'open'\n[quotas]\nkeys = 2\npublic_keys = 1\norganizations = 2";
        let cloud = Cloud::start_with(&url, settings).await;
        let eve = cloud.register("eve").await;
        let named = |(status, why): (StatusCode, Value), quota: &str| {
            assert_eq!(status, StatusCode::FORBIDDEN, "{quota}: {why}");
            assert!(why.to_string().contains(&format!("`quotas.{quota}`")), "{why}");
        };
        let key = |name: &str| json!({ "name": name });
        for number in 0..2 {
            let made = eve.send(Method::POST, "/api-key/user/full", key(&number.to_string())).await;
            assert_eq!(made.0, StatusCode::OK, "{}", made.1);
        }
        named(eve.send(Method::POST, "/api-key/user/full", key("more")).await, "keys");
        let (_, who) = eve.get("/user/v1/whoami").await;
        let ssh = |title: &str| json!({ "user": who["id"], "title": title, "public_key": "ssh-ed25519 AAAA" });
        eve.create("user__has__public_key", ssh("one")).await;
        named(eve.send(Method::POST, "/v7/user__has__public_key", ssh("two")).await, "public_keys");
        let organization = |name: &str| json!({ "name": name, "handle": name });
        eve.create("organization", organization("second")).await;
        named(eve.send(Method::POST, "/v7/organization", organization("third")).await, "organizations");
    })
    .await;
}

/// Returns how many of the lines that are sent at once are stored.
async fn lines_kept(by: &ApiCaller<'_>, device: &crate::shop::Device<'_>, sent: usize) -> usize {
    let path = format!("/device/v2/{}/log-stream", device.uuid);
    let text: String = (0..sent)
        .map(|number| format!("{}\n", crate::device_logs::line(&number.to_string())))
        .collect();
    let request = device.signed.ask(Method::POST, &path);
    let request = request
        .header("content-type", "application/x-ndjson")
        .body(text);
    let (status, why) = read(request.send().await.expect("an answer")).await;
    assert_eq!(status, StatusCode::CREATED, "{why}");
    let (_, lines) = by
        .get(&format!("/device/v2/{}/logs?count=all", device.uuid))
        .await;
    let lines = lines.as_array().expect("lines");
    lines
        .iter()
        .filter(|line| line["isSystem"] == json!(false))
        .count()
}

#[tokio::test]
async fn lines_of_logs_a_second_are_quotas_of_devices_and_of_organizations() {
    on_fresh(async |url| {
        let cloud = Cloud::start(&url).await;
        let shop = Shop::open(&cloud).await;
        let by = &shop.ann;
        let path = format!("/cloud/v1/organization/{}/quotas", organization(by).await);
        let give = async |quotas: Value| {
            let (status, why) = by.send(Method::PATCH, &path, quotas).await;
            assert_eq!(status, StatusCode::OK, "{why}");
        };
        // A device may send the amount for ten seconds at once.
        give(json!({ "log_lines_per_second": 3 })).await;
        let kept = lines_kept(by, &shop.device(1).await, 300).await;
        assert!((30..60).contains(&kept), "{kept}");
        // All devices together have a separate quota.
        give(json!({ "log_lines_per_second": 90, "organization_log_lines_per_second": 5 })).await;
        let first = lines_kept(by, &shop.device(2).await, 300).await;
        let second = lines_kept(by, &shop.device(3).await, 300).await;
        assert!((50..90).contains(&(first + second)), "{first} and {second}");
        give(json!({ "organization_log_lines_per_second": null })).await;
        assert_eq!(lines_kept(by, &shop.device(4).await, 300).await, 300);
        give(json!({ "log_lines_per_second": 0 })).await;
        assert_eq!(lines_kept(by, &shop.device(5).await, 10).await, 0);
    })
    .await;
}

#[tokio::test]
async fn quotas_are_changed_on_the_dashboard_by_administrators_of_the_cloud_alone() {
    use crate::dashboard::session::{aged, cookie, cookie_of, page, post};
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "registration = 'open'").await;
        let shop = Shop::open(&cloud).await;
        let by = &shop.ann;
        let of = organization(by).await;
        let ann = cookie(&cloud).await;
        let mallory = cloud.register("mallory").await;
        let mallory_cookie = cookie_of(&cloud, "mallory").await;
        let rows = mallory.rows("/v7/organization?$select=id").await;
        let hers = rows[0]["id"].as_i64().expect("an organization");
        let settings = format!("/dashboard/fleets/{}/settings", shop.fleet);
        let place = format!("/dashboard/organizations/{of}");
        let (_, shown) = page(&cloud, &ann, &settings).await;
        assert!(shown.contains(&place), "a way to change them: {shown}");
        let (status, shown) = page(&cloud, &ann, "/dashboard/organizations").await;
        assert_eq!(status, StatusCode::OK);
        assert!(
            shown.contains(&place) && shown.contains("mallory"),
            "{shown}"
        );
        let (_, shown) = page(&cloud, &ann, &place).await;
        assert!(shown.contains("name=\"devices\""), "{shown}");

        let change = format!("{place}/quotas");
        let fields = [
            ("devices", "7"),
            ("tags", ""),
            ("log_lines_per_second", "9"),
        ];
        let (status, shown) = post(&cloud, &ann, &change, &fields).await;
        assert!(
            status.is_success() || status.is_redirection(),
            "{status}: {shown}"
        );
        assert_eq!(usage(by, of, "devices").await["limit"], json!(7));
        assert_eq!(
            usage(by, of, "log_lines_per_second").await["limit"],
            json!(9)
        );
        assert_eq!(usage(by, of, "tags").await["is_default"], json!(true));
        for wrong in ["-1", "x", "9223372036854775808", "1.5"] {
            let (status, _) = post(&cloud, &ann, &change, &[("devices", wrong)]).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}");
        }
        let (status, _) = post(&cloud, &ann, &change, &[("devices", "")]).await;
        assert!(status.is_success() || status.is_redirection(), "{status}");
        assert_eq!(usage(by, of, "devices").await["is_default"], json!(true));
        let events = by
            .rows("/v7/audit_event?$filter=verb eq 'give-quotas'&$orderby=id asc")
            .await;
        assert_eq!(events.len(), 2);
        assert_eq!(events[0]["fields"]["devices"], json!(7));
        let (_, rest) = page(
            &cloud,
            &ann,
            &format!("/dashboard/organizations?after={of}"),
        )
        .await;
        assert!(
            !rest.contains(&format!("href=\"{place}\"")) && rest.contains("mallory"),
            "{rest}"
        );

        // Not for others' organizations, not for one's own, and not with an old session.
        let before = usage(by, of, "devices").await;
        for organization in [of, hers] {
            let change = format!("/dashboard/organizations/{organization}/quotas");
            let more = [("devices", "1000000000")];
            let (status, _) = post(&cloud, &mallory_cookie, &change, &more).await;
            assert_eq!(status, StatusCode::NOT_FOUND);
            let (status, _) = post(&cloud, "", &change, &more).await;
            assert_eq!(status, StatusCode::SEE_OTHER, "to the sign-in");
            let stale = aged(&cloud, &ann, 1).await;
            let (status, _) = post(&cloud, &stale, &change, &more).await;
            assert_eq!(status, StatusCode::FORBIDDEN);
            let wrong = [("devices", "1000000000"), ("password", "not it at all")];
            let (status, _) = post(&cloud, &stale, &change, &wrong).await;
            assert_eq!(status, StatusCode::FORBIDDEN);
            // But with the password; a limit can be 0.
            let right = [("tags", "0"), ("password", PASSWORD)];
            let (status, shown) = post(&cloud, &stale, &change, &right).await;
            assert!(
                status.is_success() || status.is_redirection(),
                "{status}: {shown}"
            );
            assert_eq!(usage(by, organization, "tags").await["limit"], json!(0));
            let body = json!({ "devices": 1_000_000_000 });
            let path = format!("/cloud/v1/organization/{organization}/quotas");
            let (status, _) = mallory.send(Method::PATCH, &path, body).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            assert_eq!(
                usage(by, organization, "devices").await["limit"],
                before["limit"]
            );
        }
        assert_eq!(
            page(&cloud, &mallory_cookie, "/dashboard/organizations")
                .await
                .0,
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            page(&cloud, &mallory_cookie, &place).await.0,
            StatusCode::NOT_FOUND
        );
        // Members see the quotas of their own organization, without a form.
        let own = format!("/dashboard/organizations/{hers}");
        let (status, shown) = page(&cloud, &mallory_cookie, &own).await;
        assert_eq!(status, StatusCode::OK);
        assert!(
            shown.contains("Quotas") && !shown.contains("name=\"devices\""),
            "{shown}"
        );
    })
    .await;
}
