//! Behaviour that clients of the reference expect, and where this API once differed.

use serde_json::{Value, json};
use tests::{Answer, Supervisor, guest, service, target};

async fn with_body(
    device: &Supervisor,
    method: &str,
    path: &str,
    content_type: &str,
    body: impl Into<Vec<u8>>,
) -> Answer {
    let request = device.request(method, path);
    let request = request.header("content-type", content_type);
    device.send(request.body(body.into())).await
}

/// A device, and the key of a service of app 7, taken from the service's output.
async fn device_with_a_key_of_app_7() -> (Supervisor, String) {
    let device = Supervisor::on_wasm().start().await;
    let mut logs = device.read_logs().await;
    let more = json!({
        "command": ["dump"],
        "labels": { "io.platform.features.supervisor-api": "1" },
    });
    let keyed = service("keyed", &guest("guest"), &more);
    device.set_target(&target(7, &[keyed])).await;
    let prefix = "variable PLATFORM_SUPERVISOR_API_KEY=";
    let line = logs.until_message(prefix).await;
    let key = line["message"].as_str().unwrap()[prefix.len()..].to_owned();
    (device, key)
}

#[tokio::test]
async fn conformance4_a_name_that_is_empty_is_the_name_of_no_service() {
    let device = Supervisor::on_wasm().start().await;
    let waits = json!({ "command": ["wait"] });
    device
        .set_target(&target(7, &[service("main", &guest("guest"), &waits)]))
        .await;
    device.until_applied().await;
    for query in [
        "service=",
        "service",
        "serviceName=",
        "serviceName=&service=main",
    ] {
        let answer = device.get(&format!("/v2/containerId?{query}")).await;
        assert_eq!(answer.status, 503, "{query}: {answer:?}");
        assert_eq!(
            answer.json()["message"],
            "Could not find service with that name"
        );
    }
    for query in ["", "?other="] {
        let answer = device.get(&format!("/v2/containerId{query}")).await;
        assert_eq!(answer.status, 200, "{query}");
        assert!(answer.json()["services"]["main"].is_string(), "{answer:?}");
    }
}

#[tokio::test]
async fn conformance5_fields_that_mean_nothing_to_a_component_are_named_in_the_answer() {
    let device = Supervisor::on_wasm().start().await;
    let fields = json!({ "command": ["wait"], "privileged": true, "cap_add": ["NET_ADMIN"] });
    let set = device
        .set_target(&target(7, &[service("main", &guest("guest"), &fields)]))
        .await;
    let warnings = set.json()["warnings"].clone();
    let ignored = |field: &str| {
        format!(
            "service `main`: `{field}` has no meaning for a service of the wasm engine and is ignored"
        )
    };
    assert_eq!(warnings, json!([ignored("cap_add"), ignored("privileged")]));
}

#[tokio::test]
async fn conformance7_no_tags_are_nothing_to_send_and_nothing_wrong() {
    let device = Supervisor::on_wasm().start().await;
    let path = "/v2/device/tags";
    for body in ["{}", ""] {
        let answer = with_body(&device, "PATCH", path, "application/json", body).await;
        assert_eq!(answer.status, 202, "{body:?}: {answer:?}");
        assert_eq!(answer.json(), json!({ "status": "success" }));
    }
    let answer = device.send(device.request("PATCH", path)).await;
    assert_eq!(answer.status, 202, "{answer:?}");
}

#[tokio::test]
async fn conformance8_a_key_of_an_app_is_refused_for_a_number_that_no_app_can_have() {
    let (device, key) = device_with_a_key_of_app_7().await;
    let posts: [(&str, Value, u16); 7] = [
        ("/v1/restart", json!({ "appId": -5 }), 503),
        ("/v1/purge", json!({ "appId": -5 }), 503),
        ("/v2/applications/-5/restart", json!({}), 503),
        ("/v2/applications/-5/purge", json!({}), 503),
        (
            "/v2/applications/-5/stop-service",
            json!({ "serviceName": "x" }),
            404,
        ),
        (
            "/v2/applications/-5/start-service",
            json!({ "serviceName": "x" }),
            404,
        ),
        (
            "/v2/applications/-5/restart-service",
            json!({ "serviceName": "x" }),
            404,
        ),
    ];
    for (path, body, for_the_device) in posts {
        let with_app_key = device.request_without_key("POST", path);
        let with_app_key = with_app_key.header("authorization", format!("Bearer {key}"));
        let answer = device.send(with_app_key.json(&body)).await;
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
        let answer = device.send(device.request("POST", path).json(&body)).await;
        assert_eq!(answer.status, for_the_device, "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn a_device_without_a_cloud_cannot_leave_local_mode() {
    let device = Supervisor::on_wasm().start().await;
    let waits = json!({ "command": ["wait"] });
    let mut target = target(7, &[service("main", &guest("guest"), &waits)]);
    device.set_target(&target).await;
    device.until_applied().await;
    target["local"]["config"]["SUPERVISOR_LOCAL_MODE"] = json!("false");
    let request = device.request("POST", "/v2/local/target-state");
    let refused = device.send(request.json(&target)).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("has no cloud"), "{message}");
    target["local"]["config"]["SUPERVISOR_LOCAL_MODE"] = json!("true");
    assert_eq!(device.set_target(&target).await.status, 200);
}

/// A body of the supervisor's own endpoints, and one of a plugin's, in forms that some clients send.
#[tokio::test]
async fn bodies_may_have_a_mark_and_have_to_be_utf_8_and_plain() {
    let device = Supervisor::on_wasm().start().await;
    const JSON: &str = "application/json";
    let marked = |text: &str| [b"\xef\xbb\xbf".as_slice(), text.as_bytes()].concat();
    for (method, path, body, accepted) in [
        ("POST", "/v1/update", r#"{"force":true}"#, 204),
        ("PATCH", "/v2/device/tags", "{}", 202),
        ("PATCH", "/v1/device/host-config", r#"{"network":{}}"#, 200),
    ] {
        let answer = with_body(&device, method, path, JSON, marked(body)).await;
        assert_eq!(answer.status, accepted, "{path}: {answer:?}");
        let utf_16: Vec<u8> = body.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let typed = "application/json; charset=utf-16";
        let answer = with_body(&device, method, path, typed, utf_16).await;
        assert_eq!(answer.status, 415, "{path}: {answer:?}");
        assert!(answer.text.contains("utf-16"), "{answer:?}");
        let request = device.request(method, path).header("content-type", JSON);
        let request = request.header("content-encoding", "gzip");
        let answer = device.send(request.body("\u{1f}x")).await;
        assert_eq!(answer.status, 415, "{path}: {answer:?}");
        assert!(answer.text.contains("compressed"), "{answer:?}");
    }
}
