//! Requests to a device by buttons.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Supervisor, page};
use crate::dashboard::session::{cookie, post};
use crate::dashboard::{ann, with_browser};
use crate::harness::on_both;
use crate::shop::Shop;

#[tokio::test]
async fn each_button_asks_the_device_what_it_says() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let supervisor = Supervisor::connect(&cloud, &device).await;
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        ann.see("Connected").await;
        let fleet = shop.fleet;
        let whole = |force: bool| json!({ "appId": fleet, "force": force });
        let actions = ann.within("Actions");
        for (button, path, force, message) in [
            ("Blink", "/v1/blink", false, "The device is blinking."),
            (
                "Update now",
                "/v1/update",
                false,
                "The device is checking for its target.",
            ),
            (
                "Update now, overriding locks",
                "/v1/update",
                true,
                "The device is checking for its target.",
            ),
            (
                "Restart services",
                "/v1/restart",
                false,
                "The services were restarted.",
            ),
        ] {
            actions.press(button).await;
            actions.see(message).await;
            assert_eq!(
                supervisor.take_requests(),
                [(path.to_owned(), whole(force))],
                "{button}"
            );
            ann.reload().await;
        }
        for (button, path, warned, message) in [
            (
                "Reboot",
                "/v1/reboot",
                "All services stop",
                "The device is rebooting.",
            ),
            (
                "Shut down",
                "/v1/shutdown",
                "The device stays off",
                "The device is shutting down.",
            ),
            (
                "Purge data",
                "/v1/purge",
                "cannot be undone",
                "The data of its services was deleted",
            ),
        ] {
            actions.cannot_press(button).await;
            actions.press(&format!("{button} …")).await;
            actions.see(warned).await;
            actions.press(button).await;
            actions.see(message).await;
            assert_eq!(
                supervisor.take_requests(),
                [(path.to_owned(), whole(false))],
                "{button}"
            );
            ann.reload().await;
        }
        let service = ann.within("Services").within("side");
        for (button, path, message) in [
            ("Stop side", "stop-service", "Stopped."),
            ("Start side", "start-service", "Started."),
            ("Restart side", "restart-service", "Restarted."),
        ] {
            service.press(button).await;
            service.see(message).await;
            let path = format!("/v2/applications/{fleet}/{path}");
            let body = json!({ "serviceName": "side", "force": false });
            assert_eq!(supervisor.take_requests(), [(path, body)], "{button}");
        }
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn the_page_reports_an_action_that_a_lock_holds_and_can_force_it() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let supervisor = Supervisor::connect(&cloud, &device).await;
        *supervisor.locked.lock().expect("a flag") = true;
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        let anyway = "Override locks and retry";
        let actions = ann.within("Actions");
        actions.press("Restart services").await;
        actions
            .see("An update lock is held, so nothing was changed.")
            .await;
        actions.see("Updates are locked by <b>main</b>").await;
        actions.press(anyway).await;
        actions.see("The services were restarted.").await;
        actions.cannot_press(anyway).await;
        let service = ann.within("Services").within("main");
        service.press("Restart main").await;
        service.see("An update lock is held").await;
        // A message next to a button remains when the page is updated.
        let report = json!({ "apps": { &shop.uuid: { "releases": { &shop.release.commit: { "services": {
            "main": { "image": shop.release.locations[0], "status": "Running" },
        }}}}}});
        assert_eq!(device.report(report).await, StatusCode::OK);
        service.see("Running").await;
        service.see("An update lock is held").await;
        service.press(anyway).await;
        service.see("Restarted.").await;
        let forced: Vec<Value> = supervisor
            .take_requests()
            .into_iter()
            .map(|(_, body)| body["force"].clone())
            .collect();
        assert_eq!(forced, [false, true, false, true]);
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn no_request_reaches_a_disconnected_device() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        ann.see("Away").await;
        ann.within("Actions").press("Blink").await;
        ann.see("The device is not connected.").await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn a_slow_device_freezes_nothing_and_a_second_press_does_not_act_again() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let supervisor = Supervisor::connect(&cloud, &device).await;
        let all = supervisor.turns.clone().acquire_many_owned(1000).await;
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        let actions = ann.within("Actions");
        actions.press_twice("Restart services").await;
        // The page is updated in the meantime.
        device
            .report(json!({ "memory_usage": 3, "memory_total": 7 }))
            .await;
        ann.see("3 of 7 MB").await;
        actions.press("Restart services").await;
        // Nor does a request from another page.
        let again = ann.another().await;
        again.open(&page(&device)).await;
        again.within("Actions").press("Restart services").await;
        again.see("This action is already in progress.").await;
        drop(all);
        actions.see("The services were restarted.").await;
        assert_eq!(supervisor.take_requests().len(), 1);
        again.leave().await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn a_keyboard_is_enough_to_blink_a_device() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let name = shop.fields(&device, "device_name").await["device_name"].clone();
        let supervisor = Supervisor::connect(&cloud, &device).await;
        let ann = ann(chromium, &cloud).await;
        ann.tab_to("shop").await;
        ann.key("Enter").await;
        ann.see("1 device").await;
        ann.key("/").await;
        assert_eq!(ann.focused().await, "Search devices by name, uuid or tag");
        ann.write(name.as_str().expect("a name")).await;
        ann.key("Enter").await;
        ann.see("1 device found").await;
        ann.tab_to(name.as_str().expect("a name")).await;
        ann.key("Enter").await;
        ann.at(&page(&device)).await;
        ann.tab_to("Blink").await;
        ann.key("Enter").await;
        ann.see("The device is blinking.").await;
        // The focus is where a user expects it next.
        assert_eq!(ann.focused().await, "Blink");
        ann.tab_to("Purge data …").await;
        ann.key("Space").await;
        ann.tab_to("Purge data").await;
        ann.key("Enter").await;
        ann.see("The data of its services was deleted").await;
        assert_eq!(supervisor.take_requests().len(), 2);
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn without_a_script_a_device_answers_with_a_page_that_leads_back() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let supervisor = Supervisor::connect(&cloud, &device).await;
        let cookie = cookie(&cloud).await;
        let (place, fleet) = (page(&device), shop.fleet);
        let whole = |force: bool| json!({ "appId": fleet, "force": force });
        let side = |force: bool| json!({ "serviceName": "side", "force": force });
        let service = |action: &str| format!("/v2/applications/{fleet}/{action}");
        let all = [
            ("update", "", "/v1/update".to_owned()),
            ("blink", "", "/v1/blink".to_owned()),
            ("restart", "", "/v1/restart".to_owned()),
            ("reboot", "", "/v1/reboot".to_owned()),
            ("shutdown", "", "/v1/shutdown".to_owned()),
            ("purge", "", "/v1/purge".to_owned()),
            ("start-service", "side", service("start-service")),
            ("stop-service", "side", service("stop-service")),
            ("restart-service", "side", service("restart-service")),
        ];
        for (action, name, path) in &all {
            let fields = [("action", *action), ("service", *name)];
            let (status, _) = post(&cloud, &cookie, &format!("{place}/ask"), &fields).await;
            assert_eq!(status, StatusCode::SEE_OTHER, "{action}");
            let body = if name.is_empty() {
                whole(false)
            } else {
                side(false)
            };
            assert_eq!(
                supervisor.take_requests(),
                [(path.clone(), body)],
                "{action}"
            );
        }
        *supervisor.locked.lock().expect("a flag") = true;
        for (action, name, path) in &all {
            let fields = [("action", *action), ("service", *name)];
            let (status, text) = post(&cloud, &cookie, &format!("{place}/ask"), &fields).await;
            assert_eq!(status, StatusCode::LOCKED, "{action}");
            assert!(text.contains("An update lock is held, so nothing was changed."));
            assert!(text.contains("Updates are locked by &lt;b&gt;main&lt;/b&gt;"));
            assert!(text.contains("Back to the device"));
            let retry = text.contains("Override locks and retry");
            assert_eq!(retry, *action != "blink", "{action}");
            let fields = [fields[0], fields[1], ("force", "yes")];
            let (status, _) = post(&cloud, &cookie, &format!("{place}/ask"), &fields).await;
            assert_eq!(status, StatusCode::SEE_OTHER, "{action}");
            let bodies = [false, true].map(|force| match *name {
                "" => (path.clone(), whole(force)),
                _ => (path.clone(), side(force)),
            });
            assert_eq!(supervisor.take_requests(), bodies, "{action}");
        }
        let together = format!("/dashboard/fleets/{fleet}/together");
        let id = device.id.to_string();
        for (action, message) in [
            ("restart", "1 held by an update lock."),
            ("reboot-overriding", "1 done."),
        ] {
            let fields = [("action", action), ("device", &*id)];
            let (status, text) = post(&cloud, &cookie, &together, &fields).await;
            assert_eq!(status, StatusCode::OK, "{action}");
            assert!(text.contains(message), "{action}: {text}");
            assert!(text.contains("Back to the fleet"));
        }
        let paths: Vec<String> = supervisor
            .take_requests()
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        assert_eq!(paths, ["/v1/restart", "/v1/reboot"]);
        // What cannot be undone is done for one device at a time.
        for action in [
            "purge",
            "purge-overriding",
            "shutdown",
            "restart-overriding",
            "blink-overriding",
            "no-such",
        ] {
            let fields = [("action", action), ("device", &*id)];
            let (status, _) = post(&cloud, &cookie, &together, &fields).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{action}");
        }
        assert_eq!(supervisor.take_requests(), []);
    })
    .await;
}
