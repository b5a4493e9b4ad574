//! Actions on a fleet, or on several of its devices at once, and its plugins.

mod plugins;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::routing::post;
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Value, json};

use super::browser::Visitor;
use super::{ann, with_browser};
use crate::fake_device::{connect, known};
use crate::reach::until;
use crate::shop::Shop;

/// Answers like a supervisor, with or without a held update lock.
fn supervisor(locked: bool, blinked: Arc<AtomicUsize>) -> Router {
    let update = move |Json(body): Json<Value>| async move {
        if locked && body["force"] != true {
            StatusCode::LOCKED
        } else {
            StatusCode::ACCEPTED
        }
    };
    let blink = move || async move {
        blinked.fetch_add(1, Ordering::SeqCst);
        StatusCode::OK
    };
    Router::new()
        .route("/v1/update", post(update))
        .route("/v1/blink", post(blink))
}

#[tokio::test]
async fn selected_devices_get_requests_pins_and_tags_together() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let here = known(&cloud, &shop.ann, shop.fleet).await;
        let away = shop.device(2).await;
        for (id, name) in [(here.id, "calm-river"), (away.id, "lone-hill")] {
            let named = json!({ "device_name": name });
            let path = format!("/v7/device({id})");
            let (status, _) = shop.ann.send(reqwest::Method::PATCH, &path, named).await;
            assert_eq!(status, StatusCode::OK);
        }
        let blinked = Arc::new(AtomicUsize::new(0));
        let tunnel = connect(&cloud, &here, supervisor(false, blinked.clone())).await;
        let ann = ann(chromium, &cloud).await;
        ann.press("shop").await;
        ann.within("calm-river").see("Connected").await;
        ann.cannot_press("Apply").await;
        ann.press("Select all").await;
        ann.choose("Action for the selected devices", "Blink").await;
        ann.press("Apply").await;
        ann.see("1 done, 1 not connected.").await;
        assert_eq!(blinked.load(Ordering::SeqCst), 1);
        ann.is_on("Choose lone-hill", true).await;
        ann.looks_well("devices-ticked").await;

        ann.press("Choose calm-river").await;
        ann.choose("Action for the selected devices", "Pin to a release")
            .await;
        ann.press("Apply").await;
        ann.see("1 done.").await;
        ann.within("lone-hill").see("Pinned").await;
        ann.choose("Action for the selected devices", "Add a tag")
            .await;
        ann.fill("Tag", "place").await;
        ann.fill("Value of the tag", "<north>").await;
        ann.press("Apply").await;
        ann.within("lone-hill").see("place: <north>").await;
        ann.choose(
            "Action for the selected devices",
            "Follow the fleet's release",
        )
        .await;
        ann.press("Apply").await;
        ann.within("lone-hill").not_see("Pinned").await;
        tunnel.abort();
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn devices_that_are_ticked_are_restarted_rebooted_deactivated_and_moved_together() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        shop.ann.fleet("annex", "raspberrypi4-64").await;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let mut devices = Vec::new();
        for name in ["calm-river", "lone-hill"] {
            let device = known(&cloud, &shop.ann, shop.fleet).await;
            let path = format!("/v7/device({})", device.id);
            let named = json!({ "device_name": name });
            let (status, _) = shop.ann.send(reqwest::Method::PATCH, &path, named).await;
            assert_eq!(status, StatusCode::OK);
            let hears = requests.clone();
            let router = Router::new().fallback(async move |uri: http::Uri, body: String| {
                let body: Value = serde_json::from_str(&body).unwrap_or_default();
                let request = (uri.path().to_owned(), body["force"].clone());
                if request.0 != "/v1/update" {
                    hears.lock().expect("a list").push(request);
                }
                StatusCode::ACCEPTED
            });
            devices.push((device.id, connect(&cloud, &device, router).await));
        }
        let ann = ann(chromium, &cloud).await;
        ann.press("shop").await;
        for name in ["calm-river", "lone-hill"] {
            ann.within(name).see("Connected").await;
        }
        ann.press("Select all").await;
        for (deed, path, force) in [
            ("Restart services", "/v1/restart", false),
            ("Reboot", "/v1/reboot", false),
            ("Reboot, overriding locks", "/v1/reboot", true),
        ] {
            ann.choose("Action for the selected devices", deed).await;
            ann.press("Apply").await;
            until("both are asked", async || {
                let request = (path.to_owned(), json!(force));
                let requests = requests.lock().expect("a list");
                (requests.iter().filter(|it| **it == request).count() == 2).then_some(())
            })
            .await;
            ann.see("2 done.").await;
        }
        let rows = async |what: &str| {
            let filter = format!("/v7/device/$count?$filter={what}");
            shop.ann.get(&filter).await.1["d"].clone()
        };
        ann.choose("Action for the selected devices", "Deactivate")
            .await;
        ann.press("Apply").await;
        until("both are inactive", async || {
            (rows("is_active eq false").await == 2).then_some(())
        })
        .await;
        ann.choose("Action for the selected devices", "Move to another fleet")
            .await;
        ann.choose("Fleet to move to", &option(&ann, "annex").await)
            .await;
        ann.looks_well("devices-moved").await;
        ann.press("Apply").await;
        until("both are moved", async || {
            let moved = "belongs_to__application/any(a:a/app_name eq 'annex')";
            (rows(moved).await == 2).then_some(())
        })
        .await;
        ann.not_see("calm-river").await;
        for (_, tunnel) in devices {
            tunnel.abort();
        }
        ann.leave().await;
    })
    .await;
}

/// Returns the text of the option with this beginning.
async fn option(ann: &Visitor, begins: &str) -> String {
    let script = format!(
        "[...document.querySelectorAll('option')].map(it => it.label.trim()).find(it => it.startsWith('{begins}'))"
    );
    let found = ann.script(&script).await;
    found.as_str().expect("a choice").to_owned()
}

#[tokio::test]
async fn a_whole_fleet_is_updated_now_and_its_locks_are_overridden() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let mut tunnels = Vec::new();
        for locked in [false, true] {
            let device = known(&cloud, &shop.ann, shop.fleet).await;
            tunnels.push(connect(&cloud, &device, supervisor(locked, Arc::default())).await);
        }
        let ann = ann(chromium, &cloud).await;
        ann.press("shop").await;
        ann.press("Settings").await;
        ann.press("Update all now").await;
        ann.see("1 done, 1 held by an update lock.").await;
        ann.press("Update all now, overriding locks").await;
        ann.see("2 done.").await;

        // From now on, updates ignore locks.
        ann.is_on("Override update locks", false).await;
        ann.press("Override update locks").await;
        ann.is_on("Override update locks", true).await;
        let path = format!(
            "/v7/application_config_variable?$filter=application eq {}&$select=name,value",
            shop.fleet
        );
        let expected = json!([{ "name": "PLATFORM_SUPERVISOR_OVERRIDE_LOCK", "value": "true" }]);
        assert_eq!(json!(shop.ann.rows(&path).await), expected);
        ann.looks_well("fleet-settings").await;
        for tunnel in tunnels {
            tunnel.abort();
        }
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn variables_of_a_fleet_reach_what_its_devices_are_to_run() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let ann = ann(chromium, &cloud).await;
        ann.press("shop").await;
        ann.press("Variables").await;
        let variables = ann.within("Variables");
        variables.fill("Name of the new variable", "COLOUR").await;
        variables.fill("Value", "red").await;
        variables.press("Add variable").await;
        variables.within("COLOUR").see("red").await;
        variables.fill("Name of the new variable", "SIZE").await;
        variables.fill("Value", "small").await;
        variables.choose("For", "side").await;
        variables.press("Add variable").await;
        variables.within("SIZE").see("small").await;
        let (state, _) = device.state().await;
        let services = &state["apps"][&shop.uuid]["releases"][&shop.release.commit]["services"];
        assert_eq!(services["main"]["environment"]["COLOUR"], "red");
        assert_eq!(services["side"]["environment"]["SIZE"], "small");
        assert!(services["main"]["environment"].get("SIZE").is_none());
        ann.looks_well("fleet-variables").await;
        ann.leave().await;
    })
    .await;
}
