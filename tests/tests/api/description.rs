//! `GET /v3/openapi.json`.

use serde_json::{Value, json};
use tests::{Answer, Supervisor};

/// The endpoints of the device API, and our additional ones.
const OPERATIONS: &[&str] = &[
    "GET /ping",
    "POST /v1/blink",
    "POST /v1/update",
    "POST /v1/reboot",
    "POST /v1/shutdown",
    "POST /v1/purge",
    "POST /v1/restart",
    "POST /v1/regenerate-api-key",
    "GET /v1/device",
    "POST /v1/apps/{appId}/stop",
    "POST /v1/apps/{appId}/start",
    "GET /v1/apps/{appId}",
    "GET /v1/healthy",
    "PATCH /v1/device/host-config",
    "GET /v1/device/host-config",
    "GET /v2/applications/state",
    "GET /v2/applications/{appId}/state",
    "GET /v2/state/status",
    "POST /v2/applications/{appId}/restart-service",
    "POST /v2/applications/{appId}/stop-service",
    "POST /v2/applications/{appId}/start-service",
    "POST /v2/applications/{appId}/restart",
    "POST /v2/applications/{appId}/purge",
    "GET /v2/version",
    "GET /v2/containerId",
    "GET /v2/local/target-state",
    "POST /v2/local/target-state",
    "GET /v2/local/device-info",
    "GET /v2/local/logs",
    "GET /v2/device/name",
    "GET /v2/device/tags",
    "PATCH /v2/device/tags",
    "GET /v2/device/vpn",
    "GET /v2/cleanup-volumes",
    "POST /v2/journal-logs",
    "GET /v3/locks",
    "PUT /v3/locks/{appId}/{service}",
    "DELETE /v3/locks/{appId}/{service}",
    "GET /metrics",
    "GET /v3/events",
    "GET /v3/plugins",
    "GET /v3/plugins/{name}/log",
    "PUT /v3/plugins/{name}",
    "DELETE /v3/plugins/{name}",
    "GET /v3/plan",
    "GET /v3/openapi.json",
];

#[tokio::test]
async fn each_operation_of_the_device_api_is_described_and_nothing_else_is() {
    let device = Supervisor::on_wasm().start().await;
    device.get("/ping").await;
    let description = device.description().await.expect("a description");
    let mut described: Vec<String> = description
        .operations()
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    let mut expected: Vec<String> = OPERATIONS.iter().map(ToString::to_string).collect();
    described.sort();
    expected.sort();
    assert_eq!(described, expected);
    for (method, path, operation) in description.operations() {
        let named = format!("{method} {path}: {operation}");
        assert!(
            operation["summary"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{named}"
        );
        let responses = operation["responses"].as_object().expect(&named);
        assert!(
            !responses.contains_key("default"),
            "our own plugins say what they answer: {named}"
        );
        for (status, response) in responses {
            assert!(status.parse::<u16>().is_ok(), "{named}");
            assert!(response["description"].is_string(), "{named}");
        }
        let open = operation["security"] == json!([]);
        assert_eq!(open, ["/ping", "/v1/healthy"].contains(&path), "{named}");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_as_described_is_noticed() {
    let device = Supervisor::on_wasm().start().await;
    let description = device.description().await.expect("a description");
    let answer = |status, body: Value| Answer {
        status,
        content_type: Some("application/json; charset=utf-8".to_owned()),
        allow: None,
        text: body.to_string(),
    };
    let good = device.json("/v1/device").await;
    let check = |answer: &Answer| description.check("GET", "/v1/device", answer);
    assert_eq!(check(&answer(200, good.clone())), Ok(()));
    assert!(check(&answer(201, good.clone())).is_err());
    for (field, value) in [
        ("api_port", json!("48484")),
        ("update_pending", json!(null)),
        ("more", json!(1)),
    ] {
        let mut wrong = good.clone();
        wrong[field] = value;
        assert!(check(&answer(200, wrong)).is_err(), "{field}");
    }
    let vpn = answer(200, json!({"status": "success", "vpn": {"enabled": true}}));
    let checked = description.check("GET", "/v2/device/vpn", &vpn);
    assert!(
        checked.is_err(),
        "a plugin's answers are held against its own schemas"
    );
}
