//! Actions on services: which service a request refers to, who may request them, and the form of each refusal.

use std::sync::Arc;

use model::{Action, ActionError, DeviceStatus, PowerAction, Verb};
use serde_json::json;

use super::router::{JSON, TEXT, answer, failed, post};
use crate::LocalModeAuth;
use crate::fake::{FakeDevice, Fixture, TestAnswer, fixture, two_apps};

/// Returns a device that answers every action with `outcome`.
fn device(status: DeviceStatus, outcome: Result<(), ActionError>) -> Fixture {
    let device = FakeDevice {
        outcome,
        ..FakeDevice::default()
    };
    *device.status.lock().unwrap() = Arc::new(status);
    fixture(device, LocalModeAuth::default())
}

/// Returns a device whose shop runs `web` and, about to be removed, `gone`; `db` is still being downloaded. The farm
/// runs `web`.
fn several() -> Fixture {
    device(two_apps(), Ok(()))
}

/// Returns a device with the farm's `web` as its only service.
fn single(outcome: Result<(), ActionError>) -> Fixture {
    let mut status = two_apps();
    status.apps.retain(|_, app| app.id.0 == 2);
    device(status, outcome)
}

async fn ask(device: &Fixture, path: &str, body: &str) -> TestAnswer {
    device
        .ask(post(device, path, "application/json", body))
        .await
}

fn text(status: u16, body: &str) -> TestAnswer {
    answer(status, TEXT, body)
}

fn take_actions(device: &Fixture) -> Vec<Action> {
    std::mem::take(&mut *device.device.actions.lock().unwrap())
}

fn web() -> model::ServiceName {
    "web".parse().unwrap()
}

#[tokio::test]
async fn a_service_is_named_by_its_name_its_image_or_both() {
    let device = several();
    for body in [
        json!({"serviceName": "web"}),
        json!({"imageId": 1011}),
        json!({"imageId": "1011"}),
        json!({"serviceName": "web", "imageId": 1011}),
        json!({"serviceName": "web", "imageId": "no number", "force": "yes"}),
    ] {
        for (verb, expected) in [
            ("restart-service", Verb::Restart(Some(web()))),
            ("stop-service", Verb::Stop(web())),
            ("start-service", Verb::Start(web())),
        ] {
            let path = format!("/v2/applications/1/{verb}");
            let answer = ask(&device, &path, &body.to_string()).await;
            assert_eq!(answer, text(200, "OK"), "{verb} {body}");
            let action = Action {
                app: "shop-uuid".parse().unwrap(),
                verb: expected,
                force: false,
            };
            assert_eq!(take_actions(&device), [action]);
        }
    }
}

#[tokio::test]
async fn a_service_that_is_not_meant_clearly_is_refused_in_the_known_order() {
    let device = several();
    let no_app = "App not found: an app needs to be installed for this endpoint to work";
    let no_service = "Service not found, a container must exist for this endpoint to work";
    let going = "Service does not exist in target release";
    let nothing = "Service name or image id was not given, or the app has several containers: use the v2 \
                   service endpoints";
    for (app, body, expected) in [
        ("x", "{}", failed(400, "Invalid app id")),
        ("0", "{}", failed(400, "Invalid app id")),
        ("1.5", "{}", failed(400, "Invalid app id")),
        ("1", "{}", text(400, nothing)),
        ("1", r#"{"serviceName":""}"#, text(400, nothing)),
        (
            "1",
            r#"{"serviceName":7,"imageId":true}"#,
            text(400, nothing),
        ),
        ("9", "{}", text(400, nothing)),
        ("9", r#"{"serviceName":"web"}"#, text(404, no_app)),
        ("-1", r#"{"serviceName":"web"}"#, text(404, no_app)),
        ("1", r#"{"serviceName":"nobody"}"#, text(404, no_service)),
        ("1", r#"{"imageId":5}"#, text(404, no_service)),
        // It is in the target and has no container yet.
        ("1", r#"{"serviceName":"db"}"#, text(404, no_service)),
        (
            "1",
            r#"{"serviceName":"web","imageId":5}"#,
            text(404, no_service),
        ),
        ("1", r#"{"serviceName":"gone"}"#, text(404, going)),
        (
            "1",
            r#"{"serviceName":"web","imageId":1013}"#,
            failed(
                400,
                "`serviceName` is service `web`, but `imageId` is of service `gone`: give one of them, or \
                 both of one service",
            ),
        ),
    ] {
        for verb in ["restart-service", "stop-service", "start-service"] {
            let path = format!("/v2/applications/{app}/{verb}");
            assert_eq!(ask(&device, &path, body).await, expected, "{path} {body}");
        }
    }
    assert_eq!(take_actions(&device), []);
}

#[tokio::test]
async fn an_app_is_restarted_and_purged_by_its_number() {
    let device = several();
    let data = answer(200, JSON, r#"{"Data":"OK","Error":""}"#);
    for (path, body, verb, force, expected) in [
        (
            "/v1/restart",
            r#"{"appId":1}"#,
            Verb::Restart(None),
            false,
            text(200, "OK"),
        ),
        (
            "/v1/restart",
            r#"{"appId":"1","force":1}"#,
            Verb::Restart(None),
            true,
            text(200, "OK"),
        ),
        (
            "/v1/purge",
            r#"{"appId":1.0,"force":"on"}"#,
            Verb::Purge,
            true,
            data,
        ),
        (
            "/v2/applications/1/restart",
            "",
            Verb::Restart(None),
            false,
            text(200, "OK"),
        ),
        (
            "/v2/applications/1.0/purge",
            r#"{"force":true}"#,
            Verb::Purge,
            true,
            text(200, "OK"),
        ),
    ] {
        assert_eq!(ask(&device, path, body).await, expected, "{path} {body}");
        let action = Action {
            app: "shop-uuid".parse().unwrap(),
            verb,
            force,
        };
        assert_eq!(take_actions(&device), [action]);
    }
    let unknown = |id| {
        failed(
            503,
            &format!("Application with ID {id} is not in the current state"),
        )
    };
    for (path, body, expected) in [
        ("/v1/restart", "{}", text(400, "Missing app id")),
        (
            "/v1/restart",
            r#"{"appId":"1x"}"#,
            text(400, "Missing app id"),
        ),
        (
            "/v1/purge",
            r#"{"appId":null}"#,
            text(400, "Invalid or missing appId"),
        ),
        ("/v1/purge", "[]", text(400, "Invalid or missing appId")),
        ("/v1/restart", r#"{"appId":9}"#, unknown(9)),
        ("/v1/purge", r#"{"appId":-9}"#, unknown(-9)),
        ("/v2/applications/9/restart", "", unknown(9)),
        ("/v2/applications/9/purge", "", unknown(9)),
        (
            "/v2/applications/x/restart",
            "",
            failed(400, "Missing app id"),
        ),
        (
            "/v2/applications/0/purge",
            "",
            failed(400, "Missing app id"),
        ),
    ] {
        assert_eq!(ask(&device, path, body).await, expected, "{path} {body}");
    }
    assert_eq!(take_actions(&device), []);
}

#[tokio::test]
async fn a_key_of_another_app_acts_on_nothing() {
    let device = several();
    let shop = device.shop_key.clone();
    let unauthorized = failed(401, "Unauthorized");
    for (path, body, expected) in [
        ("/v1/restart", r#"{"appId":2}"#, unauthorized.clone()),
        ("/v1/purge", r#"{"appId":2}"#, unauthorized.clone()),
        ("/v2/applications/2/restart", "", unauthorized.clone()),
        ("/v2/applications/2/purge", "", unauthorized.clone()),
        (
            "/v2/applications/2/restart-service",
            "{}",
            unauthorized.clone(),
        ),
        (
            "/v2/applications/2/stop-service",
            "{}",
            unauthorized.clone(),
        ),
        ("/v2/applications/2/start-service", "{}", unauthorized),
        ("/v1/apps/2/stop", "", text(401, "Unauthorized")),
        ("/v1/apps/2/start", "", text(401, "Unauthorized")),
    ] {
        let mut request = post(&device, path, "application/json", body);
        *request.uri_mut() = format!("{path}?apikey={shop}").parse().unwrap();
        assert_eq!(device.ask(request).await, expected, "{path}");
    }
    let request = crate::fake::request("GET", "/v1/apps/2", &shop);
    let expected = failed(401, "Application is not available");
    assert_eq!(device.ask(request).await, expected);
    assert_eq!(take_actions(&device), []);
    // Actions on its own app are allowed.
    let mut own = post(&device, "/v2/applications/1/restart", "", "");
    *own.uri_mut() = format!("/v2/applications/1/restart?apikey={shop}")
        .parse()
        .unwrap();
    assert_eq!(device.ask(own).await, text(200, "OK"));
}

#[tokio::test]
async fn the_only_container_of_a_device_is_stopped_started_and_shown_by_the_first_api() {
    let device = single(Ok(()));
    for (path, verb) in [
        ("/v1/apps/2/stop", Verb::Stop(web())),
        ("/v1/apps/2/start", Verb::Start(web())),
    ] {
        let expected = answer(200, JSON, r#"{"containerId":"container-21"}"#);
        assert_eq!(ask(&device, path, r#"{"force":true}"#).await, expected);
        let action = Action {
            app: "farm-uuid".parse().unwrap(),
            verb,
            force: true,
        };
        assert_eq!(take_actions(&device), [action]);
    }
    // Keys in the container's environment are not shown.
    let container = json!({
        "appId": 2, "commit": "old2", "containerId": "container-21",
        "env": {"CONTAINER": "container-21"}, "imageId": "registry/web:1", "releaseId": 7,
    });
    let response = device.get("/v1/apps/2").await;
    assert_eq!(response.status, 200);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&response.body).unwrap(),
        container
    );
}

#[tokio::test]
async fn the_first_api_refuses_a_device_with_several_containers() {
    let device = several();
    let several = "Service name or image id was not given, or the app has several containers: use the v2 \
                   service endpoints";
    let no_app = "App not found: an app needs to be installed for this endpoint to work";
    for verb in ["stop", "start"] {
        for (app, expected) in [
            ("x", text(400, "Invalid app id")),
            ("9", text(400, no_app)),
            ("1", text(400, several)),
            // The app has one container, the device has more.
            ("2", text(400, several)),
        ] {
            let path = format!("/v1/apps/{app}/{verb}");
            assert_eq!(ask(&device, &path, "").await, expected, "{path}");
        }
    }
    let only = "Some v1 endpoints are only allowed on single-container apps";
    for (app, expected) in [
        ("x", "Missing app id"),
        ("9", "App not found"),
        ("1", only),
        ("2", only),
    ] {
        assert_eq!(
            device.get(&format!("/v1/apps/{app}")).await,
            text(400, expected)
        );
    }
    assert_eq!(take_actions(&device), []);
}

#[tokio::test]
async fn the_device_is_rebooted_and_switched_off() {
    let device = several();
    for (path, body, power) in [
        ("/v1/reboot", "", (PowerAction::Reboot, false)),
        (
            "/v1/shutdown",
            r#"{"force":"true"}"#,
            (PowerAction::PowerOff, true),
        ),
    ] {
        let expected = answer(202, JSON, r#"{"Data":"OK","Error":""}"#);
        assert_eq!(ask(&device, path, body).await, expected);
        let powered = std::mem::take(&mut *device.device.powered.lock().unwrap());
        assert_eq!(powered, [power]);
    }
}

#[tokio::test]
async fn a_lock_and_a_failure_have_each_endpoints_own_shape() {
    let why = "Lockfile exists for { appId: 2, service: web }";
    for (outcome, status) in [
        (ActionError::Locked(why.into()), 423),
        (ActionError::Failed(why.into()), 503),
    ] {
        let device = single(Err(outcome));
        for (path, body) in [
            ("/v1/restart", r#"{"appId":2}"#),
            ("/v1/purge", r#"{"appId":2}"#),
            ("/v1/apps/2/stop", ""),
            ("/v1/apps/2/start", ""),
            ("/v2/applications/2/restart", ""),
            ("/v2/applications/2/purge", ""),
            (
                "/v2/applications/2/restart-service",
                r#"{"serviceName":"web"}"#,
            ),
            (
                "/v2/applications/2/stop-service",
                r#"{"serviceName":"web"}"#,
            ),
            (
                "/v2/applications/2/start-service",
                r#"{"serviceName":"web"}"#,
            ),
        ] {
            assert_eq!(
                ask(&device, path, body).await,
                failed(status, why),
                "{path}"
            );
        }
        let data = json!({"Data": "", "Error": why}).to_string();
        let status = if status == 503 { 500 } else { status };
        for path in ["/v1/reboot", "/v1/shutdown"] {
            assert_eq!(ask(&device, path, "").await, answer(status, JSON, &data));
        }
    }
}

#[tokio::test]
async fn volumes_are_cleaned_up() {
    let device = several();
    let expected = answer(200, JSON, r#"{"status":"success"}"#);
    assert_eq!(device.get("/v2/cleanup-volumes").await, expected);
    let failing = single(Err(ActionError::Failed("the disk is gone".into())));
    let expected = failed(503, "the disk is gone");
    assert_eq!(failing.get("/v2/cleanup-volumes").await, expected);
}

/// Returns the farm, whose `web` has lost its container to an action.
fn acted_on(outcome: Result<(), ActionError>) -> Fixture {
    let mut status = two_apps();
    status.apps.retain(|_, app| app.id.0 == 2);
    for app in status.apps.values_mut() {
        app.services[0].container = None;
        app.services[0].created_at_ms = None;
    }
    status.acting = status.apps.keys().cloned().collect();
    device(status, outcome)
}

#[tokio::test]
async fn conformance2_an_action_on_an_app_whose_containers_another_action_has_away_is_queued() {
    let device = acted_on(Ok(()));
    for (path, body, verb) in [
        ("/v1/restart", r#"{"appId": 2}"#, Verb::Restart(None)),
        ("/v1/purge", r#"{"appId": 2}"#, Verb::Purge),
        ("/v2/applications/2/restart", "{}", Verb::Restart(None)),
        ("/v2/applications/2/purge", "{}", Verb::Purge),
        (
            "/v2/applications/2/stop-service",
            r#"{"serviceName": "web"}"#,
            Verb::Stop(web()),
        ),
        (
            "/v2/applications/2/start-service",
            r#"{"imageId": 1021}"#,
            Verb::Start(web()),
        ),
        (
            "/v2/applications/2/restart-service",
            r#"{"serviceName": "web"}"#,
            Verb::Restart(Some(web())),
        ),
    ] {
        let answered = ask(&device, path, body).await;
        assert_eq!(answered.status, 200, "{path}: {answered:?}");
        let verbs: Vec<Verb> = take_actions(&device).into_iter().map(|a| a.verb).collect();
        assert_eq!(verbs, [verb], "{path}");
    }
    let unknown = ask(
        &device,
        "/v2/applications/2/stop-service",
        r#"{"serviceName": "nobody"}"#,
    );
    assert_eq!(unknown.await.status, 404);
    assert_eq!(
        ask(&device, "/v1/restart", r#"{"appId": 3}"#).await.status,
        503
    );
    assert_eq!(take_actions(&device), []);

    // Nothing brings the container back: it is refused as usual.
    let mut status = DeviceStatus::clone(&device.device.status.lock().unwrap());
    status.acting.clear();
    *device.device.status.lock().unwrap() = Arc::new(status);
    assert_eq!(
        ask(&device, "/v1/restart", r#"{"appId": 2}"#).await.status,
        503
    );
}
