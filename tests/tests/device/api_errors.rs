//! Each way to make a wrong request, with the status and the form that clients expect of it.

use serde_json::json;
use tests::Supervisor;

const TARGET: &str = "/v2/local/target-state";

#[tokio::test]
async fn unknown_routes_and_wrong_methods_have_different_errors() {
    let device = Supervisor::on_wasm().start().await;
    for (method, path, status, allow) in [
        ("GET", "/", 404, None),
        ("GET", "/v1", 404, None),
        ("GET", "/v1/devices", 404, None),
        ("GET", "//v1/device", 404, None),
        ("GET", "/v1/device/x", 404, None),
        ("POST", "/v3/nothing", 404, None),
        ("POST", "/v1/device", 405, Some("GET, HEAD")),
        ("GET", "/v1/blink", 405, Some("POST")),
        ("GET", "/v1/regenerate-api-key", 405, Some("POST")),
        ("PUT", TARGET, 405, Some("GET, HEAD, POST")),
        ("DELETE", "/v2/local/logs", 405, Some("GET, HEAD")),
        ("OPTIONS", "/v2/version", 405, Some("GET, HEAD")),
        ("POST", "/v2/applications/1/state", 405, Some("GET, HEAD")),
        ("POST", "/v3/plugins", 405, Some("GET, HEAD")),
        // A plugin's route.
        ("POST", "/v2/device/name", 405, Some("GET, HEAD")),
    ] {
        let answer = device.send(device.request(method, path)).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(answer.failure().is_some(), "{method} {path}: {answer:?}");
        assert_eq!(answer.allow.as_deref(), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn paths_match_whatever_their_case_and_with_a_slash_at_the_end() {
    let device = Supervisor::on_wasm().start().await;
    for path in [
        "/V1/Device/",
        "/v1/device?unknown=1&unknown=2",
        "/V2/containerid",
        "/v2/applications/STATE",
        "/V2/Local/Target-State/",
        "/V2/Device/Name/",
    ] {
        assert_eq!(device.get(path).await.status, 200, "{path}");
        let head = device.send(device.request("HEAD", path)).await;
        assert_eq!((head.status, head.text.as_str()), (200, ""), "{path}");
    }
}

#[tokio::test]
async fn bodies_that_are_not_what_they_claim_are_refused_with_the_place() {
    let device = Supervisor::on_wasm().start().await;
    for (body, place) in [
        ("{", "line 1 column 1"),
        ("{\n \"local\": }", "line 2 column 11"),
        ("null", "line 1 column"),
        ("1", "line 1 column"),
        ("\"text\"", "line 1 column"),
        ("{} {}", "line 1 column 4"),
    ] {
        let request = device
            .request("POST", TARGET)
            .header("content-type", "application/json")
            .body(body);
        let answer = device.send(request).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        let message = answer.failure().unwrap();
        assert!(message.contains(place), "{body}: {message}");
    }
    // Endpoints that ignore the body accept any.
    let request = device
        .request("POST", "/v1/blink")
        .header("content-type", "application/json")
        .body("{");
    assert_eq!(device.send(request).await.status, 200);
}

#[tokio::test]
async fn a_body_of_ten_mebibytes_is_read_and_a_larger_one_refused() {
    let device = Supervisor::on_wasm().start().await;
    for (length, status) in [(10 << 20, 200), ((10 << 20) + 1, 413), (40 << 20, 413)] {
        let mut body = br#"{"local":{"apps":{}}}"#.to_vec();
        body.resize(length, b' ');
        let request = device
            .request("POST", TARGET)
            .header("content-type", "application/json")
            .body(body);
        let answer = device.send(request).await;
        assert_eq!(answer.status, status, "{length}: {answer:?}");
        assert_eq!(answer.failure().is_some(), status == 413);
    }
}

#[tokio::test]
async fn targets_of_the_wrong_shape_are_refused_whole_and_change_nothing() {
    let device = Supervisor::on_wasm().start().await;
    let good = json!({"local": {"name": "kept", "config": {}, "apps": {}}});
    device.set_target(&good).await;
    let app = |services: serde_json::Value| {
        json!({"local": {"apps": {"1": {
            "name": "a", "commit": "c", "releaseId": "1", "services": services,
            "volumes": {}, "networks": {},
        }}}})
    };
    let service = |environment: serde_json::Value, labels: serde_json::Value| {
        app(json!({"1": {
            "serviceName": "s", "imageId": 1, "image": "i", "environment": environment, "labels": labels,
        }}))
    };
    for (target, named) in [
        (json!({"local": 1}), "local"),
        (json!({"local": {"apps": []}}), "apps"),
        (json!({"local": {"apps": {"x": {}}}}), "x"),
        (
            json!({"local": {"apps": {}, "config": {"SUPERVISOR_DELTA": 1}}}),
            "SUPERVISOR_DELTA",
        ),
        (app(json!([])), "services"),
        (app(json!({"1": {"image": "i"}})), "environment"),
        (service(json!({"A": 1}), json!({})), "A"),
        (service(json!({"1A": "x"}), json!({})), "1A"),
        (service(json!({}), json!({"a b": "x"})), "a b"),
        (service(json!([]), json!({})), "environment"),
    ] {
        let answer = device.post(TARGET, &target).await;
        assert_eq!(answer.status, 400, "{target}: {answer:?}");
        let message = answer.failure().unwrap();
        assert!(
            message.starts_with("Invalid target state."),
            "{target}: {message}"
        );
        assert!(message.contains(named), "{target}: {message}");
    }
    let stored = device.json(TARGET).await;
    assert_eq!(stored["state"]["local"]["name"], "kept");
}

#[tokio::test]
async fn unknown_apps_and_services_get_the_answer_of_their_endpoint() {
    let device = Supervisor::on_wasm().start().await;
    for (path, status, message) in [
        (
            "/v2/applications/7/state",
            409,
            "Application ID does not exist: 7",
        ),
        (
            "/v2/applications/-1/state",
            409,
            "Application ID does not exist: -1",
        ),
        ("/v2/applications/0/state", 400, "Invalid application ID: 0"),
        (
            "/v2/applications/Ab/state",
            400,
            "Invalid application ID: Ab",
        ),
        (
            "/v2/applications/1.5/state",
            400,
            "Invalid application ID: 1.5",
        ),
        (
            "/v2/containerId?service=x",
            503,
            "Could not find service with that name",
        ),
        (
            "/v2/containerId?serviceName=x",
            503,
            "Could not find service with that name",
        ),
    ] {
        let answer = device.get(path).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_eq!(answer.failure().as_deref(), Some(message), "{path}");
    }
}
