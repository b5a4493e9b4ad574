//! The pages of a fleet's plugins, requested like a browser, without one: what devices answer about one plugin, also
//! devices that answer what no supervisor does.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use data::testing::{on_fresh, sql};
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::{self, BoxStream};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::dashboard::session::{cookie, cookie_of, page};
use crate::fake_device::{KnownDevice, connect, known};
use crate::harness::{Cloud, on_both};
use crate::reach::until;
use crate::shop::Shop;

/// Creates a supervisor that answers with this when it is asked for its plugins.
fn answers(text: impl Into<String>) -> Router {
    let text = text.into();
    let answer = move || async move { ([(CONTENT_TYPE, "application/json")], text) };
    Router::new().route("/v3/plugins", get(answer))
}

/// Creates a supervisor with these plugins.
fn with_plugins(plugins: Value) -> Router {
    answers(json!({ "status": "success", "plugins": plugins }).to_string())
}

/// A plugin that runs.
fn rails() -> Value {
    json!({
        "name": "acme-rails", "file": "/x/acme_rails.wasm", "version": "1.2.0", "state": "running",
        "description": "Switches rails", "vendor": "Acme", "licence": "Apache-2.0",
        "homepage": "https://acme.example/rails?a=1&b=2", "digest": "ab12", "signedBy": "acme-2026",
        "grants": ["store", "leds"], "calls": 7, "failures": 2,
        "lastError": "the board has no such rail\nat line two",
    })
}

/// Creates devices of a fleet, connects them to these supervisors, and waits until the cloud says so.
async fn connected(cloud: &Cloud, shop: &Shop<'_>, routers: Vec<Router>) -> Vec<KnownDevice> {
    let number = routers.len();
    let mut devices = Vec::new();
    for router in routers {
        let device = known(cloud, &shop.ann, shop.fleet).await;
        connect(cloud, &device, router).await;
        devices.push(device);
    }
    until_online(shop, number).await;
    devices
}

async fn until_online(shop: &Shop<'_>, number: usize) {
    let path = format!(
        "/v7/device/$count?$filter=belongs_to__application eq {} and is_online eq true",
        shop.fleet
    );
    until("the devices are online", async || {
        let (_, count) = shop.ann.get(&path).await;
        (count["d"] == number).then_some(())
    })
    .await;
}

/// Returns a device's row on a page: everything from the link to it to the end of the row.
fn row<'a>(page: &'a str, device: &KnownDevice) -> &'a str {
    let link = format!("<a href=\"/dashboard/devices/{}/plugins\"", device.uuid);
    let (_, rest) = page.split_once(&link).expect("a row of the device");
    rest.split("</tr>").next().unwrap_or_default()
}

#[tokio::test]
async fn a_plugin_is_shown_over_a_fleet_with_what_each_device_reports_about_it() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let mut older = rails();
        older["version"] = json!("1.1.0");
        older["signedBy"] = Value::Null;
        older["refused"] = json!("the signature is older than the file in use");
        older["vendor"] = json!("Acme & Sons");
        let refused = json!({
            "name": "acme-rails", "version": "0.9.0", "state": "refused",
            "refused": "the policy pins no file of a plugin `acme-rails`",
        });
        let routers = vec![
            with_plugins(json!([rails(), { "name": "other", "state": "running" }])),
            with_plugins(json!([older])),
            with_plugins(json!([refused])),
            with_plugins(json!([{ "name": "other", "state": "running" }])),
        ];
        let devices = connected(&cloud, &shop, routers).await;
        let cookie = cookie(&cloud).await;
        let fleet = format!("/dashboard/fleets/{}", shop.fleet);
        let (_, table) = page(&cloud, &cookie, &format!("{fleet}/plugins")).await;
        let link = format!("<a href=\"{fleet}/plugin/acme-rails\">acme-rails</a>");
        assert!(table.contains(&link), "{table}");

        let (status, shown) = page(&cloud, &cookie, &format!("{fleet}/plugin/acme-rails")).await;
        assert_eq!(status, StatusCode::OK);
        for text in [
            "<h2>Plugin acme-rails</h2>",
            "4 of 4 connected devices answered.",
            "<dt>Description</dt><dd><div class=\"line-of\">Switches rails</div></dd>",
            "Acme on 1</div><div class=\"line-of\">Acme &amp; Sons on 1",
            "<dt>Licence</dt><dd><div class=\"line-of\">Apache-2.0</div></dd>",
            "<a href=\"https://acme.example/rails?a=1&amp;b=2\" rel=\"noopener nofollow\">",
        ] {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        for (device, texts) in devices.iter().zip([
            vec![
                ">1.2.0<",
                ">Key acme-2026<",
                "Running",
                ">store, leds<",
                ">2 of 7 calls<",
                ">the board has no such rail<",
                "/plugin/acme-rails#plugin-log\"",
            ],
            vec![
                ">1.1.0<",
                ">Its digest<",
                "Older version running",
                "the signature is older than the file in use",
            ],
            vec![
                ">0.9.0<",
                "Not in use",
                "Refused",
                "the policy pins no file of a plugin `acme-rails`",
                ">0 of 0 calls<",
            ],
        ]) {
            let row = row(&shown, device);
            for text in texts {
                assert!(row.contains(text), "{text}: {row}");
            }
        }
        assert!(!shown.contains("at line two"), "{shown}");
        assert!(
            !shown.contains(&devices[3].uuid),
            "it does not have the plugin"
        );

        let (status, none) = page(&cloud, &cookie, &format!("{fleet}/plugin/no-such")).await;
        assert_eq!(status, StatusCode::OK);
        assert!(
            none.contains("No device that answered has a plugin of this name."),
            "{none}"
        );
        for name in ["Acme", "a_b", "%3Cscript%3E", "..%2f"] {
            let (status, _) = page(&cloud, &cookie, &format!("{fleet}/plugin/{name}")).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_device_that_answers_garbage_too_much_or_never_costs_only_its_own_row() {
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "[reach]\nanswer_seconds = 2").await;
        let shop = Shop::open(&cloud).await;
        let half = |rest: BoxStream<'static, String>| {
            let begin = stream::once(async { "{\"plugins\":[".to_owned() });
            let body = Body::from_stream(begin.chain(rest).map(Ok::<_, Infallible>));
            ([(CONTENT_TYPE, "application/json")], body).into_response()
        };
        let endless = move || async move { half(stream::repeat("{},".repeat(5000)).boxed()) };
        let halting = move || async move { half(stream::pending().boxed()) };
        let picture = || async { ([(CONTENT_TYPE, "image/png")], "PNG") };
        let many = json!(vec![json!({}); 20_000]);
        let routers = vec![
            with_plugins(json!([rails()])),
            answers("{\"plugins\":[{\"name\":7}]}"),
            answers(format!("{{\"plugins\":{}", "[".repeat(100_000))),
            answers("<script>alert(1)</script>"),
            Router::new().route("/v3/plugins", get(endless)),
            Router::new().route("/v3/plugins", get(halting)),
            Router::new().route("/v3/plugins", get(std::future::pending::<()>)),
            Router::new().route("/v3/plugins", get(picture)),
            Router::new(),
            with_plugins(many),
        ];
        let devices = connected(&cloud, &shop, routers).await;
        let away = known(&cloud, &shop.ann, shop.fleet).await;
        let online = sql("UPDATE device SET is_online = TRUE WHERE id = ?");
        shop.execute(online.with(away.id)).await;

        let cookie = cookie(&cloud).await;
        let fleet = format!("/dashboard/fleets/{}", shop.fleet);
        let (status, table) = page(&cloud, &cookie, &format!("{fleet}/plugins")).await;
        assert_eq!(status, StatusCode::OK);
        assert!(
            table.contains("2 of 11 connected devices answered."),
            "{table}"
        );
        assert!(table.contains("1.2.0 on 1"), "{table}");

        let (status, shown) = page(&cloud, &cookie, &format!("{fleet}/plugin/acme-rails")).await;
        assert_eq!(status, StatusCode::OK);
        assert!(
            shown.contains("2 of 11 connected devices answered."),
            "{shown}"
        );
        for (at, text) in [
            (0, ">2 of 7 calls<"),
            (1, "could not be read."),
            (2, "could not be read."),
            (3, "could not be read."),
            (4, "length limit exceeded"),
            (5, "The device did not answer within 2s."),
            (6, "The device did not answer within 2s."),
            (7, "The device answered 500."),
            (8, "The device answered 404."),
        ] {
            let row = row(&shown, &devices[at]);
            assert!(row.contains(text), "{at} {text}: {row}");
            assert_eq!(at == 0, row.contains("#plugin-log"), "{row}");
        }
        assert!(!shown.contains(&devices[9].uuid), "it has no such plugin");
        assert!(row(&shown, &away).contains("The device is not connected any more."));
        assert!(!shown.contains("<script>alert"), "{shown}");
    })
    .await;
}

#[tokio::test]
async fn a_plugin_of_a_hostile_device_stays_text_of_bounded_length() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let markup = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'\u{202e}";
        let long = format!("{markup}{}", "<b>".repeat(5_000));
        let hostile = json!({
            "name": "acme-rails", "version": long, "state": markup, "refused": long, "description": long,
            "vendor": long, "licence": long, "homepage": "javascript:alert(3)", "digest": markup, "signedBy": long,
            "grants": [markup, long], "calls": 18_446_744_073_709_551_615_u64, "failures": 1,
            "lastError": format!("{markup}\n{long}"), "interface": markup,
            "routes": [{ "method": markup, "path": markup }], "provides": [markup],
        });
        let named = |name: &str, homepage: &str| {
            json!({ "name": name, "state": "running", "homepage": homepage })
        };
        let plugins = json!([
            hostile,
            named(markup, "https://acme.example"),
            named("acme-rails", "https://acme.example@evil.example/"),
            named("acme-rails", "/dashboard/account"),
        ]);
        let lines = json!({ "lines": [{ "time": markup, "level": markup, "message": long }] });
        let log = move || async move { Json(lines) };
        let router = with_plugins(plugins).route("/v3/plugins/acme-rails/log", get(log));
        let device = connected(&cloud, &shop, vec![router]).await.remove(0);
        let cookie = cookie(&cloud).await;
        let of_fleet = format!("/dashboard/fleets/{}", shop.fleet);
        let of_device = format!("/dashboard/devices/{}", device.uuid);
        for path in [
            format!("{of_fleet}/plugins"),
            format!("{of_fleet}/plugin/acme-rails"),
            format!("{of_device}/plugins"),
            format!("{of_device}/plugin/acme-rails"),
        ] {
            let (status, shown) = page(&cloud, &cookie, &path).await;
            assert_eq!(status, StatusCode::OK);
            assert!(shown.contains("acme-rails"), "{path}: {shown}");
            assert!(shown.contains("&lt;script&gt;alert(1)"), "{path}: {shown}");
            for never in ["<script>alert", "<img src=x", "<b>", "\u{202e}"] {
                assert!(!shown.contains(never), "{path}: {never}: {shown}");
            }
            for link in shown.split("href=\"").skip(1) {
                let link = link.split('"').next().unwrap_or_default();
                let is_local = link.starts_with("/dashboard") || link == "#main";
                assert!(is_local, "{path}: {link}");
                assert!(!link.contains("&lt;"), "{link}");
            }
            assert!(shown.len() < 40_000, "{path}: {}", shown.len());
        }
        let path = format!("{of_fleet}/plugin/acme-rails");
        let (_, shown) = page(&cloud, &cookie, &path).await;
        for address in [
            ">javascript:alert(3) on 1<",
            ">https://acme.example@evil.example/ on 1<",
            ">/dashboard/account on 1<",
        ] {
            assert!(shown.contains(address), "{address}: {shown}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_page_queries_only_the_first_devices_and_states_their_number() {
    on_fresh(async |url| {
        let cloud = Cloud::start(&url).await;
        let shop = Shop::open(&cloud).await;
        let routers = vec![with_plugins(json!([rails()])); 102];
        let devices = connected(&cloud, &shop, routers).await;
        let cookie = cookie(&cloud).await;
        let counts = "This page queries at most 100 devices: the first 100 of 102 connected devices, in the order of \
                       their registration. 100 of them answered.";
        let fleet = format!("/dashboard/fleets/{}", shop.fleet);
        let paths = ["plugins", "plugin/acme-rails"].map(|path| format!("{fleet}/{path}"));
        let pages = paths.each_ref().map(|path| page(&cloud, &cookie, path));
        for (status, shown) in join_all(pages).await {
            assert_eq!(status, StatusCode::OK);
            assert!(shown.contains(counts), "{shown}");
            if shown.contains("1.2.0 on ") {
                assert!(shown.contains("1.2.0 on 100"), "{shown}");
                continue;
            }
            for (at, device) in devices.iter().enumerate() {
                assert_eq!(shown.contains(&device.uuid), at < 100, "{at}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_plugin_of_devices_that_one_may_not_see_or_read_is_not_shown() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = connected(&cloud, &shop, vec![with_plugins(json!([rails()]))]).await;
        let eve = json!({
            "username": "eve", "email": "eve@other.example", "password": crate::harness::PASSWORD,
        });
        let (status, why) = shop.ann.send(http::Method::POST, "/user/register", eve).await;
        assert_eq!(status, StatusCode::CREATED, "{why}");
        let cookie = cookie_of(&cloud, "eve").await;
        let path = format!("/dashboard/fleets/{}/plugin/acme-rails", shop.fleet);
        for path in [path.clone(), format!("{path}/live")] {
            let (status, shown) = page(&cloud, &cookie, &path).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {shown}");
            assert!(!shown.contains("Acme") && !shown.contains("shop"), "{shown}");
        }
        for (role, may) in [("observer", false), ("operator", false), ("developer", true)] {
            let share = sql(
                "INSERT INTO user_application_membership (created_at, modified_at, \"user\", is_member_of__application, \
                 application_membership_role) SELECT 1, 1, u.id, ?, r.id FROM \"user\" AS u, \
                 application_membership_role AS r WHERE u.username = 'eve' AND r.name = ?",
            );
            shop.execute(share.with(shop.fleet).with(role)).await;
            let (status, shown) = page(&cloud, &cookie, &path).await;
            assert_eq!(status, StatusCode::OK, "{role}: {shown}");
            assert_eq!(shown.contains(&device[0].uuid), may, "{role}: {shown}");
            assert_eq!(shown.contains("Key acme-2026"), may, "{role}: {shown}");
            assert_eq!(shown.contains("You may not read this"), !may, "{role}: {shown}");
            shop.execute(sql("DELETE FROM user_application_membership")).await;
        }
        // The fleet is public: everybody sees it, but not its devices.
        let public = json!({ "is_public": true });
        let fleet = format!("/v7/application({})", shop.fleet);
        let (status, why) = shop.ann.send(http::Method::PATCH, &fleet, public).await;
        assert_eq!(status, StatusCode::OK, "{why}");
        let (status, shown) = page(&cloud, &cookie, &path).await;
        assert_eq!(status, StatusCode::OK, "{shown}");
        assert!(!shown.contains(&device[0].uuid) && !shown.contains("Key acme"), "{shown}");
    })
    .await;
}
