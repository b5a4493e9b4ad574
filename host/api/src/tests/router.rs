//! The router without a socket: each endpoint's answer, and each possible error.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::Method;
use model::AppId;
use serde_json::{Value, json};
use store::KeyOwner;

use crate::client_connection::ClientConnection;
use crate::fake::{FakeDevice, Fixture, TestAnswer, fixture, fixture_with, request, two_apps};
use crate::{Body, LocalModeAuth, ServiceKeys, Settings, core_routes};

pub(super) const JSON: &str = "application/json; charset=utf-8";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

fn managed() -> Fixture {
    fixture(FakeDevice::default(), LocalModeAuth::default())
}

fn in_local_mode(auth: LocalModeAuth) -> Fixture {
    let device = FakeDevice {
        local_mode: true,
        ..FakeDevice::default()
    };
    fixture(device, auth)
}

fn with_two_apps() -> Fixture {
    let fixture = managed();
    *fixture.device.status.lock().unwrap() = Arc::new(two_apps());
    fixture
}

pub(super) fn answer(status: u16, content_type: &str, body: &str) -> TestAnswer {
    TestAnswer {
        status,
        content_type: (!content_type.is_empty()).then(|| content_type.to_owned()),
        allow: None,
        body: body.to_owned(),
    }
}

pub(super) fn failed(status: u16, message: &str) -> TestAnswer {
    let body = json!({"status": "failed", "message": message}).to_string();
    answer(status, JSON, &body)
}

pub(super) fn post(device: &Fixture, path: &str, content_type: &str, body: &str) -> crate::Request {
    let mut request = request("POST", path, &device.key);
    request
        .headers_mut()
        .insert("content-type", content_type.parse().unwrap());
    *request.body_mut() = Body::from(body.to_owned());
    request
}

#[tokio::test]
async fn ping_and_health_answer_without_a_key() {
    let device = managed();
    for path in ["/ping", "/PING/", "/ping?apikey=wrong"] {
        assert_eq!(
            device.ask(request("GET", path, "")).await,
            answer(200, TEXT, "OK")
        );
    }
    assert_eq!(
        device.ask(request("GET", "/v1/healthy", "wrong")).await,
        answer(200, "", "")
    );
    let sick = fixture(
        FakeDevice {
            problems: vec!["the loop stands still".into()],
            ..FakeDevice::default()
        },
        LocalModeAuth::default(),
    );
    assert_eq!(
        sick.ask(request("GET", "/v1/healthy", "")).await,
        answer(500, TEXT, "Unhealthy")
    );
    // Problems of all plugins together count as well.
    let problem = "the thread that interrupts plugins has ended".to_owned();
    device.endpoints.problems.lock().unwrap().push(problem);
    assert_eq!(
        device.ask(request("GET", "/v1/healthy", "")).await,
        answer(500, TEXT, "Unhealthy")
    );
}

#[test]
fn the_list_for_authors_of_plugins_has_all_core_routes() {
    let routes: Vec<_> = core_routes()
        .map(|route| (route.method.as_str(), route.path))
        .collect();
    assert_eq!(plugin_manifest::CORE_ROUTES, routes);
}

#[tokio::test]
async fn every_other_path_wants_a_key_before_it_is_looked_up() {
    let device = managed();
    let unauthorized = answer(401, TEXT, "Unauthorized");
    let unknown = [
        (Method::GET, "/nothing"),
        (Method::PUT, "/v1/device"),
        (Method::POST, "/ping"),
        (Method::GET, "/v3/greet"),
    ];
    let routes = core_routes().map(|route| (route.method.clone(), route.path));
    for (method, path) in routes.chain(unknown) {
        if method == Method::GET && matches!(path, "/ping" | "/v1/healthy") {
            continue;
        }
        for key in ["", "wrong"] {
            let mut request = request(method.as_str(), path, key);
            request
                .headers_mut()
                .insert("content-type", "application/json".parse().unwrap());
            *request.body_mut() = Body::from("{malformed");
            assert_eq!(device.ask(request).await, unauthorized, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_key_in_the_query_wins_over_the_header_even_when_it_is_wrong() {
    let device = managed();
    let wrong = request("GET", "/v1/device?apikey=wrong", &device.key);
    assert_eq!(device.ask(wrong).await.status, 401);
    let right = request("GET", &format!("/v1/device?apikey={}", device.key), "wrong");
    assert_eq!(device.ask(right).await.status, 200);
}

#[tokio::test]
async fn local_mode_needs_no_key_as_far_as_configuration_opens_it() {
    for (auth, local, others, health) in [
        (LocalModeAuth::LocalEndpoints, 200, 401, 200),
        (LocalModeAuth::Open, 200, 200, 200),
        (LocalModeAuth::Strict, 401, 401, 200),
    ] {
        let device = in_local_mode(auth);
        for (path, expected) in [
            ("/v2/local/target-state", local),
            ("/v2/version", local),
            ("/v2/state/status", local),
            ("/v2/containerId", local),
            ("/v1/device", others),
            ("/v2/applications/state", others),
            ("/v3/plugins", others),
            ("/v1/healthy", health),
            ("/ping", 200),
        ] {
            for key in ["", "wrong"] {
                let answer = device.ask(request("GET", path, key)).await;
                assert_eq!(answer.status, expected, "{auth:?} {path} {key:?}");
            }
            assert_eq!(device.get(path).await.status, 200, "{auth:?} {path}");
        }
    }
    let unlocked = managed();
    let target = request("GET", "/v2/local/target-state", "");
    assert_eq!(unlocked.ask(target).await.status, 401);
}

#[tokio::test]
async fn without_a_key_nothing_is_open_unless_the_listener_and_the_client_are_named() {
    assert_eq!(LocalModeAuth::default(), LocalModeAuth::Strict);
    let mut device = in_local_mode(LocalModeAuth::Open);
    let path = "/v2/local/target-state";
    assert_eq!(device.ask(request("GET", path, "")).await.status, 200);
    // Requests without a connection come through the cloud's tunnel.
    let tunnelled = device.app.answer(request("GET", path, "")).await;
    assert_eq!(tunnelled.status(), 401);
    device.connection = ClientConnection::without_socket(LocalModeAuth::Open, false);
    for path in [path, "/v2/version", "/v1/device"] {
        assert_eq!(device.ask(request("GET", path, "")).await.status, 401);
        assert_eq!(device.get(path).await.status, 200, "{path}");
    }
    // A service's key is valid only for its own app.
    let state = request("GET", "/v2/applications/2/state", &device.shop_key);
    assert_eq!(device.ask(state).await.status, 409);
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_are_json_failures() {
    let device = managed();
    for path in ["/", "/v1", "/v9/device", "/v1/device/more", "/v3/nothing"] {
        let expected = failed(404, &format!("no such endpoint: GET {path}"));
        assert_eq!(device.get(path).await, expected);
    }
    for (method, path, allow) in [
        ("DELETE", "/v2/version", "GET, HEAD"),
        ("OPTIONS", "/v2/local/target-state", "GET, HEAD, POST"),
        ("GET", "/v1/blink", "POST"),
        // The core and a plugin share this path.
        ("POST", "/v1/device", "GET, HEAD, PATCH"),
        ("POST", "/v3/greet", "GET, HEAD"),
    ] {
        let answer = device.ask(request(method, path, &device.key)).await;
        assert_eq!(
            (answer.status, answer.content_type.as_deref()),
            (405, Some(JSON))
        );
        assert_eq!(answer.allow.as_deref(), Some(allow), "{method} {path}");
    }
}

#[tokio::test]
async fn routes_outside_the_core_belong_to_plugins() {
    let device = managed();
    for (method, path) in [
        ("GET", "/v3/greet"),
        ("HEAD", "/v3/greet"),
        ("PATCH", "/v1/device"),
    ] {
        let answer = device.ask(request(method, path, &device.key)).await;
        assert_eq!(
            (answer.status, answer.body),
            (200, format!("hello from {path} to DeviceKey"))
        );
    }
    let plugins = device.json("/v3/plugins").await;
    assert_eq!(
        plugins,
        json!({
            "status": "success", "version": env!("CARGO_PKG_VERSION"), "plugins": [{
                "name": "greet", "file": "/plugins/greet.wasm", "digest": "", "state": "running", "routes": [],
                "provides": [], "events": [], "actions": [], "grants": [],
                "fields": [{ "name": "level", "value": 40, "unit": "%" }], "calls": 3, "failures": 1,
            }],
            "confinement": {
                "required": true,
                "processes": [{
                    "process": "compiler", "inForce": ["user"], "lower": [],
                    "missing": [{"wall": "files", "reason": "no Landlock"}],
                }],
            },
        })
    );
}

#[tokio::test]
async fn the_description_is_of_the_plugins_that_there_are_now() {
    let device = managed();
    let summary = async || {
        let description = device.json("/v3/openapi.json").await;
        description["paths"]["/v3/greet"]["get"]["summary"].clone()
    };
    assert_eq!(summary().await, "answered by plugin `greet`");
    assert_eq!(summary().await, "answered by plugin `greet`");
    let newer = json!({"paths": {"/v3/greet": {"get": {"summary": "greets"}}}});
    *device.endpoints.description.lock().unwrap() = Some(newer);
    assert_eq!(summary().await, "greets");
}

#[tokio::test]
async fn a_plugin_receives_the_maker_of_the_request() {
    let shop = r#"Service { app: AppId(1), service: ServiceName("web") }"#;
    let managed = managed();
    let (key, shop_key) = (managed.key.clone(), managed.shop_key.clone());
    let open = in_local_mode(LocalModeAuth::Open);
    let (open_key, open_shop_key) = (open.key.clone(), open.shop_key.clone());
    for (device, key, requester) in [
        (&managed, key, "DeviceKey"),
        (&managed, shop_key, shop),
        (&open, open_key, "DeviceKey"),
        // If no key is needed, having one changes nothing.
        (&open, open_shop_key, "LocalMode"),
        (&open, String::new(), "LocalMode"),
        (&open, "wrong".to_owned(), "LocalMode"),
    ] {
        let answer = device.ask(request("GET", "/v3/greet", &key)).await;
        let expected = format!("hello from /v3/greet to {requester}");
        assert_eq!((answer.status, answer.body), (200, expected));
    }
}

#[tokio::test]
async fn clients_retry_requests_to_a_plugin_that_is_not_loaded_yet() {
    let device = managed();
    let message = "plugin `greet` is being loaded";
    assert_eq!(device.get("/v3/slow").await, failed(503, message));
    let response = device.app.answer(request("GET", "/v3/slow", &device.key));
    let response = response.await;
    assert_eq!(response.headers()[http::header::RETRY_AFTER], "5");
}

#[tokio::test]
async fn a_panic_in_a_handler_is_an_answer() {
    let device = fixture(
        FakeDevice {
            panics: true,
            ..FakeDevice::default()
        },
        LocalModeAuth::default(),
    );
    let message = "the supervisor failed to answer this request; its log says why";
    assert_eq!(device.get("/v1/device").await, failed(500, message));
    assert_eq!(device.get("/v2/version").await.status, 200);
}

#[tokio::test]
async fn blink_answers_at_once_and_looks_at_no_body() {
    let device = managed();
    for body in ["", "{malformed"] {
        let blink = post(&device, "/v1/blink", "application/json", body);
        assert_eq!(device.ask(blink).await, answer(200, "", ""));
    }
    assert_eq!(device.endpoints.identified.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn regenerating_answers_the_new_key_and_needs_the_old_one() {
    let device = in_local_mode(LocalModeAuth::Open);
    let path = "/v1/regenerate-api-key";
    for old in [&device.key, &device.shop_key] {
        let answered = device.ask(request("POST", path, old)).await;
        assert_eq!(answered.body.len(), 32);
        assert_eq!(answered, answer(200, TEXT, &answered.body));
        let regenerate = |key: &str| device.ask(request("POST", path, key));
        assert_eq!(regenerate(old).await.status, 503);
        assert_eq!(regenerate(&answered.body).await.status, 200);
    }
    let shop = KeyOwner::Service {
        app: AppId(1),
        service: "web".parse().unwrap(),
    };
    let owners = device.device.replaced.lock().unwrap().clone();
    let global = KeyOwner::Global;
    assert_eq!(owners, [global.clone(), global, shop.clone(), shop]);
    assert_eq!(
        device.ask(request("POST", path, "")).await,
        failed(503, "there is no key to replace: the request has none")
    );
}

#[tokio::test]
async fn the_device_state_leaves_out_what_is_not_known() {
    let device = managed();
    let empty = json!({
        "api_port": 48484, "supervisor_version": "19.0.0",
        "update_pending": false, "update_failed": false, "update_downloaded": false,
    });
    assert_eq!(device.json("/v1/device").await, empty);

    *device.device.status.lock().unwrap() = Arc::new(two_apps());
    let mut with_apps = empty;
    with_apps["commit"] = json!("old1");
    with_apps["status"] = json!("Idle");
    with_apps["download_progress"] = Value::Null;
    assert_eq!(device.json("/v1/device").await, with_apps);

    let applying = model::DeviceStatus {
        applying: true,
        ..two_apps()
    };
    *device.device.status.lock().unwrap() = Arc::new(applying);
    assert_eq!(device.json("/v1/device").await.get("commit"), None);
}

#[tokio::test]
async fn application_states_are_those_of_the_target_and_within_the_keys_scope() {
    let device = with_two_apps();
    let shop = json!({
        "appId": 1, "appUuid": "shop-uuid", "commit": "new1", "updateStatus": "downloading",
        "services": {
            "db": {"status": "Downloading", "releaseId": 100, "downloadProgress": 40, "image": "registry/db:1"},
            "web": {"status": "Running", "releaseId": 100, "downloadProgress": null, "image": "registry/web:1"},
        },
    });
    let all = device.json("/v2/applications/state").await;
    assert_eq!(all["shop"], shop);
    assert_eq!(all["farm"]["services"]["web"]["status"], "exited");

    let scoped = device
        .ask(request("GET", "/v2/applications/state", &device.shop_key))
        .await;
    assert_eq!(
        serde_json::from_str::<Value>(&scoped.body).unwrap(),
        json!({ "shop": shop })
    );
    assert_eq!(managed().json("/v2/applications/state").await, json!({}));
}

#[tokio::test]
async fn the_state_of_one_app_is_by_service_id() {
    let device = with_two_apps();
    let shop = json!({
        "commit": "old1",
        "local": {"1": {"services": {
            "11": {"status": "Running", "releaseId": 7, "download_progress": null},
            "12": {"status": "Downloading", "releaseId": 7, "download_progress": 40},
            "13": {"status": "Stopping", "releaseId": 7, "download_progress": null},
        }}},
    });
    for path in [
        "/v2/applications/1/state",
        "/V2/Applications/1.0/State/",
        "/v2/applications/%31/state",
    ] {
        assert_eq!(device.json(path).await, shop);
    }
    for (segment, expected) in [
        ("Abc", failed(400, "Invalid application ID: Abc")),
        ("0", failed(400, "Invalid application ID: 0")),
        ("1.5", failed(400, "Invalid application ID: 1.5")),
        ("3", failed(409, "Application ID does not exist: 3")),
        ("-3", failed(409, "Application ID does not exist: -3")),
    ] {
        let path = format!("/v2/applications/{segment}/state");
        assert_eq!(device.get(&path).await, expected, "{segment}");
    }
    let out_of_scope = request("GET", "/v2/applications/2/state", &device.shop_key);
    assert_eq!(
        device.ask(out_of_scope).await,
        failed(409, "Application ID does not exist: 2")
    );
}

#[tokio::test]
async fn two_containers_of_one_service_are_a_hand_over() {
    let mut status = two_apps();
    for app in status.apps.values_mut() {
        let newer = model::ServiceStatus {
            release: model::ReleaseId(8),
            ..app.services[0].clone()
        };
        app.services.push(newer);
    }
    let device = managed();
    *device.device.status.lock().unwrap() = Arc::new(status);
    let shop = device.json("/v2/applications/1/state").await;
    let web = &shop["local"]["1"]["services"]["11"];
    assert_eq!(
        (&web["status"], &web["releaseId"]),
        (&json!("Handing over"), &json!(7))
    );
}

#[tokio::test]
async fn the_state_status_shows_one_app() {
    let device = with_two_apps();
    let status = device.json("/v2/state/status").await;
    // Apps are sorted by their uuids: `farm` is the first with a container.
    assert_eq!(
        status,
        json!({
            "status": "success", "appState": "applied", "overallDownloadProgress": 51,
            "containers": [{
                "status": "exited", "serviceName": "web", "appId": 2, "imageId": 1021, "serviceId": 21,
                "containerId": "container-21", "createdAt": "2023-11-14T22:13:20.123Z",
            }],
            "images": [{
                "name": "registry/web:1", "appId": 2, "serviceName": "web", "imageId": 2,
                "status": "Downloading", "downloadProgress": 61,
            }],
            "release": "old2",
        })
    );
    let scoped = device
        .ask(request("GET", "/v2/state/status", &device.shop_key))
        .await;
    let scoped: Value = serde_json::from_str(&scoped.body).unwrap();
    assert_eq!(scoped["release"], "old1");
    assert_eq!(scoped["overallDownloadProgress"], 40);
    assert_eq!(scoped["containers"].as_array().unwrap().len(), 2);
    assert_eq!(scoped["images"][0]["dockerImageId"], "sha256:ab");

    assert_eq!(
        managed().json("/v2/state/status").await,
        json!({
            "status": "success", "appState": "applied", "overallDownloadProgress": null,
            "containers": [], "images": [],
        })
    );
}

#[tokio::test]
async fn container_ids_are_found_by_service_name() {
    let device = with_two_apps();
    for (key, query, expected) in [
        (
            &device.shop_key,
            "",
            json!({"services": {"web": "container-11", "gone": "container-13"}}),
        ),
        (
            &device.shop_key,
            "?service=web",
            json!({"containerId": "container-11"}),
        ),
        (
            &device.shop_key,
            "?service=x&serviceName=w%65b",
            json!({"containerId": "container-11"}),
        ),
    ] {
        let answer = device
            .ask(request("GET", &format!("/v2/containerId{query}"), key))
            .await;
        let mut ids: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(ids["status"].take(), "success");
        ids.as_object_mut().unwrap().remove("status");
        assert_eq!(ids, expected, "{query}");
    }
    // `db` has no container yet.
    for name in ["db", "nothing", "WEB", ""] {
        assert_eq!(
            device.get(&format!("/v2/containerId?service={name}")).await,
            failed(503, "Could not find service with that name")
        );
    }
}

#[tokio::test]
async fn the_version_is_the_level_of_the_api() {
    assert_eq!(
        managed().get("/v2/version").await,
        answer(200, JSON, r#"{"status":"success","version":"19.0.0"}"#)
    );
}

#[tokio::test]
async fn a_local_target_is_accepted_only_in_local_mode() {
    let device = in_local_mode(LocalModeAuth::default());
    let path = "/v2/local/target-state";
    let ok = answer(200, JSON, r#"{"status":"success","message":"OK"}"#);
    let warned = answer(
        200,
        JSON,
        r#"{"status":"success","message":"OK","warnings":["`build` is not supported"]}"#,
    );
    for (content_type, body, expected) in [
        (
            "application/json",
            r#"{"local":{"apps":{}},"force":"ON"}"#,
            ok,
        ),
        ("application/json", r#"{"local":"warn"}"#, warned),
        (
            "application/json",
            r#"{"local":1}"#,
            failed(400, "Invalid target state.\n`local` must be an object"),
        ),
        (
            "application/json",
            r#"{"local":"break"}"#,
            failed(503, "failed to store the target state"),
        ),
        (
            "application/json",
            "{",
            failed(
                400,
                "malformed JSON in the request body: EOF while parsing an object at line 1 column 1",
            ),
        ),
    ] {
        let answer = device.ask(post(&device, path, content_type, body)).await;
        assert_eq!(answer, expected, "{body}");
    }
    assert_eq!(
        *device.device.targets.lock().unwrap(),
        [(json!({"local": {"apps": {}}, "force": "ON"}), true)]
    );
    let managed_device = managed();
    let body = r#"{"local":{"apps":{}}}"#;
    assert_eq!(
        managed_device
            .ask(post(&managed_device, path, "application/json", body))
            .await,
        failed(
            400,
            "Target state can only set when device is in local mode"
        )
    );
    assert_eq!(
        managed().json(path).await,
        json!({"status": "success", "state": {"local": {"name": "local", "config": {}, "apps": {}}}})
    );
}

#[tokio::test]
async fn a_target_that_names_no_apps_removes_none() {
    let device = in_local_mode(LocalModeAuth::default());
    let path = "/v2/local/target-state";
    let target = r#"{"local":{"apps":{}}}"#;
    for (content_type, body, status) in [
        ("application/x-www-form-urlencoded", target, 415),
        ("text/plain", target, 415),
        ("application/octet-stream", target, 415),
        ("", target, 415),
        ("application/json", "", 400),
        ("application/json", "[]", 400),
        ("application/json", "{}", 400),
        ("application/json", r#"{"apps":{}}"#, 400),
        ("application/json", r#"{"local":{}}"#, 400),
        (
            "application/json",
            r#"{"local":{"name":"a","config":{}}}"#,
            400,
        ),
    ] {
        let answer = device.ask(post(&device, path, content_type, body)).await;
        assert_eq!(answer.status, status, "{content_type} {body}: {answer:?}");
        let named = match status {
            415 => "Content-Type",
            _ => "`local.apps`",
        };
        assert!(
            answer.body.contains(named),
            "{content_type} {body}: {answer:?}"
        );
    }
    assert!(device.device.targets.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_log_stream_greets_at_once_and_ends_when_the_api_stops() {
    use http_body_util::BodyExt;
    let device = in_local_mode(LocalModeAuth::default());
    let response = device
        .app
        .answer(request("GET", "/v2/local/logs", &device.key))
        .await;
    let mut body = response.into_body();
    for expected in [
        r#"{"message":"Streaming logs","isSystem":true}"#,
        r#"{"message":"hello","timestamp":5,"serviceName":"web","serviceId":11,"isStdErr":true}"#,
        r#"{"message":"2 lines were lost","timestamp":6,"isSystem":true}"#,
    ] {
        let line = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(line, format!("{expected}\n"));
    }
    device.stopping.cancel();
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn log_readers_are_limited_and_make_room_when_they_leave() {
    let device = in_local_mode(LocalModeAuth::default());
    let read = || {
        device
            .app
            .answer(request("GET", "/v2/local/logs", &device.key))
    };
    let mut readers = Vec::new();
    for _ in 0..crate::v2::local_logs::MAX_READERS {
        readers.push(read().await);
    }
    assert_eq!(read().await.status(), 503);
    readers.pop();
    assert_eq!(read().await.status(), 200);
}

#[tokio::test]
async fn an_update_is_triggered_with_what_is_lenient_in_the_body() {
    let device = managed();
    let path = "/v1/update";
    for (content_type, body, force, cancel) in [
        ("application/json", "", false, false),
        ("application/json", "[]", false, false),
        ("text/plain", r#"{"force":true}"#, false, false),
        ("application/json", r#"{"force":true}"#, true, false),
        (
            "application/json",
            r#"{"force":"ON","cancel":1}"#,
            true,
            true,
        ),
        (
            "application/json",
            r#"{"force":"yes","cancel":{}}"#,
            false,
            false,
        ),
        (
            "application/x-www-form-urlencoded",
            "cancel=on",
            false,
            true,
        ),
    ] {
        let answer = device.ask(post(&device, path, content_type, body)).await;
        let sent = (answer.status, answer.content_type, answer.body.as_str());
        assert_eq!(sent, (204, None, ""), "{body}");
        let updated = device.device.updated.lock().unwrap().pop();
        assert_eq!(updated, Some((force, cancel)), "{body}");
    }
    let malformed = device
        .ask(post(&device, path, "application/json", "{"))
        .await;
    assert_eq!(malformed.status, 400);
    assert_eq!(device.ask(request("POST", path, "wrong")).await.status, 401);
    assert_eq!(*device.device.updated.lock().unwrap(), []);
}

#[tokio::test]
async fn an_update_that_configuration_holds_back_is_accepted_and_not_made() {
    let device = fixture(
        FakeDevice {
            updates: false,
            ..FakeDevice::default()
        },
        LocalModeAuth::default(),
    );
    let json = "application/json";
    let accepted = device.ask(post(&device, "/v1/update", json, "{}")).await;
    assert_eq!((accepted.status, accepted.body.as_str()), (202, "Accepted"));
    let forced = r#"{"force":1}"#;
    let forced = device.ask(post(&device, "/v1/update", json, forced)).await;
    assert_eq!(forced.status, 204);
}

#[tokio::test]
async fn where_the_owner_says_so_a_key_of_a_service_opens_its_own_app_alone() {
    let settings = Settings {
        service_keys: ServiceKeys::OwnApp,
        ..Settings::default()
    };
    let narrow = fixture_with(FakeDevice::default(), LocalModeAuth::default(), settings);
    *narrow.device.status.lock().unwrap() = Arc::new(two_apps());
    let wide = with_two_apps();
    for (method, path, is_open) in [
        ("GET", "/v1/device", true),
        ("GET", "/v2/applications/state", true),
        ("GET", "/v3/locks", true),
        ("GET", "/v2/applications/1/state", true),
        ("POST", "/v2/applications/1/restart", true),
        ("POST", "/v1/reboot", false),
        ("POST", "/V1/Reboot/", false),
        ("POST", "/v1/update", false),
        ("GET", "/v2/cleanup-volumes", false),
        ("GET", "/v2/local/target-state", false),
        ("GET", "/v3/greet", false),
        ("PATCH", "/v1/device", false),
        ("GET", "/v3/no-such", false),
    ] {
        for (device, key, is_refused) in [
            (&narrow, &narrow.shop_key, !is_open),
            (&narrow, &narrow.key, false),
            (&wide, &wide.shop_key, false),
        ] {
            let answer = device.ask(request(method, path, key)).await;
            let says_why = answer.body.contains("service_keys");
            assert_eq!(says_why, is_refused, "{method} {path}: {answer:?}");
            assert_eq!(answer.status == 401, is_refused, "{method} {path}");
        }
    }
    let powered = narrow.device.powered.lock().unwrap();
    assert_eq!(powered.len(), 2, "the device's key, twice");
}
