//! A service that replaces its key to the API: it is created again with the new one at the next update, or whenever
//! else its container is created, and not at once (docs/spec/device.md#keys-regenerate).

use std::path::Path;

use serde_json::{Value, json};
use tests::{Answer, LogReader, RecordedCloud, Supervisor, guest, service, target, until};

const VARIABLE: &str = "variable PLATFORM_SUPERVISOR_API_KEY=";
const LABEL: &str = "io.platform.features.supervisor-api";

/// Returns the next key that the service prints.
async fn key_of(logs: &mut LogReader) -> String {
    let line = logs.until_message(VARIABLE).await;
    line["message"].as_str().unwrap()[VARIABLE.len()..].to_owned()
}

async fn by(device: &Supervisor, key: &str, method: &str, path: &str) -> Answer {
    let request = device.request_without_key(method, path).bearer_auth(key);
    device.send(request).await
}

async fn replace(device: &Supervisor, key: &str) -> String {
    let answer = by(device, key, "POST", "/v1/regenerate-api-key").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text
}

async fn containers(device: &Supervisor) -> Value {
    device.json("/v2/containerId").await["services"].clone()
}

/// An app whose first service prints its key and whose second has none.
fn with_and_without_key() -> Value {
    let dump = json!({"command": ["dump"], "labels": {LABEL: "1"}});
    let server = service("server", &guest("hello-server"), &json!({}));
    target(1, &[service("main", &guest("guest"), &dump), server])
}

async fn until_made_anew(device: &Supervisor, before: &Value, service: &str) -> Value {
    until("the container to be recreated", || async {
        let now = containers(device).await;
        if now[service].is_string() && now[service] != before[service] {
            Ok(now)
        } else {
            Err((now, device.log()))
        }
    })
    .await
}

#[tokio::test]
async fn conformance1_a_replaced_key_reaches_its_service_with_the_next_update_and_not_before() {
    let device = Supervisor::on_wasm().start().await;
    let mut logs = device.read_logs().await;
    device.set_target(&with_and_without_key()).await;
    let mut key = key_of(&mut logs).await;
    device.until_applied().await;
    for body in [json!({}), json!({"force": true}), json!({"cancel": true})] {
        let before = containers(&device).await;
        let new = replace(&device, &key).await;
        let plan = device.json("/v3/plan").await;
        let steps: Vec<(&str, &str, &str, &str)> = plan["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| {
                assert_eq!(step["blockedBy"][0]["kind"], "next-update", "{step}");
                let word = |field: &str| step[field].as_str().unwrap();
                (word("kind"), word("service"), word("state"), word("reason"))
            })
            .collect();
        let blocked = |kind| (kind, "main", "blocked", "key-replaced");
        assert_eq!(steps, [blocked("remove-service"), blocked("start-service")]);
        assert_eq!(containers(&device).await, before, "nothing is done at once");

        assert_eq!(device.post("/v1/update", &body).await.status, 204);
        let made = key_of(&mut logs).await;
        assert_eq!(made, new, "after {body}");
        assert_eq!(by(&device, &made, "GET", "/v1/device").await.status, 200);
        let after = until_made_anew(&device, &before, "main").await;
        assert_eq!(after["server"], before["server"], "the other goes on");
        device.until_applied().await;
        assert_eq!(device.json("/v3/plan").await["state"], "settled");
        key = new;
    }
}

#[tokio::test]
async fn conformance1_an_action_that_makes_the_container_gives_it_the_new_key() {
    let device = Supervisor::on_wasm().start().await;
    let mut logs = device.read_logs().await;
    device.set_target(&with_and_without_key()).await;
    let mut key = key_of(&mut logs).await;
    device.until_applied().await;
    let app = json!({"appId": 1});
    for (path, body) in [
        (
            "/v2/applications/1/restart-service",
            json!({"serviceName": "main"}),
        ),
        ("/v2/applications/1/restart", json!({})),
        ("/v1/restart", app.clone()),
        ("/v2/applications/1/purge", json!({})),
        ("/v1/purge", app),
    ] {
        // Twice: neither of the older keys becomes valid again.
        let between = replace(&device, &key).await;
        let new = replace(&device, &between).await;
        let done = device.post(path, &body).await;
        assert_eq!(done.status, 200, "{path}: {done:?}");
        assert_eq!(key_of(&mut logs).await, new, "after {path}");
        let made = containers(&device).await;
        device.until_applied().await;
        assert_eq!(
            device.json("/v3/plan").await["state"],
            "settled",
            "after {path} nothing is left for the next update"
        );
        assert_eq!(containers(&device).await, made);
        key = new;
    }
}

#[tokio::test]
async fn conformance1_a_restart_before_a_pending_update_brings_the_service_back_with_its_new_key() {
    let device = Supervisor::on_wasm().start().await;
    let mut logs = device.read_logs().await;
    device.set_target(&with_and_without_key()).await;
    let key = key_of(&mut logs).await;
    device.until_applied().await;
    let mut pending = with_and_without_key();
    let missing = service("later", Path::new("/nowhere/later.wasm"), &json!({}));
    pending["local"]["apps"]["1"]["services"]["3"] = missing;
    assert_eq!(device.set_target(&pending).await.status, 200);
    let new = replace(&device, &key).await;
    let done = device
        .post("/v2/applications/1/restart", &json!({"force": true}))
        .await;
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(key_of(&mut logs).await, new);
}

#[tokio::test]
async fn conformance1_an_update_that_finds_the_clouds_target_unchanged_brings_the_new_key() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    cloud.change(|device| {
        let releases = device["apps"].as_object_mut().unwrap().values_mut();
        for release in
            releases.flat_map(|app| app["releases"].as_object_mut().unwrap().values_mut())
        {
            let main = &mut release["services"]["main"];
            main["labels"][LABEL] = json!("1");
            main["composition"]["command"] = json!(["dump"]);
        }
    });
    let device = Supervisor::on_wasm()
        .config_json(cloud.config_json())
        .start()
        .await;
    let key = until("the service to print its key", || async {
        let lines = cloud.logs();
        let messages = lines.iter().filter_map(|line| line["message"].as_str());
        let mut keys = messages.filter_map(|message| message.strip_prefix(VARIABLE));
        keys.next().map(str::to_owned).ok_or(lines.len())
    })
    .await;
    device.until_applied().await;
    let before = containers(&device).await;
    let new = replace(&device, &key).await;
    assert_eq!(device.post("/v1/update", &json!({})).await.status, 204);
    cloud.until_logged(&format!("{VARIABLE}{new}")).await;
    until_made_anew(&device, &before, "main").await;
}
