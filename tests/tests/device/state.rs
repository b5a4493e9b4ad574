//! A target state, from its arrival to running services, and back to nothing.

use serde_json::{Value, json};
use tests::{Answer, Supervisor, guest, service, services_of, target, until};

fn hello() -> Vec<Value> {
    vec![
        service("server", &guest("hello-server"), &json!({"imageId": 11})),
        service("client", &guest("hello-client"), &json!({"imageId": 12})),
    ]
}

fn ids(status: &Value) -> Vec<(String, String)> {
    let containers = status["containers"].as_array().unwrap();
    let mut ids: Vec<_> = containers
        .iter()
        .map(|container| {
            let text = |key: &str| container[key].as_str().unwrap().to_owned();
            (text("serviceName"), text("containerId"))
        })
        .collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn services_of_a_target_run_and_talk_to_each_other() {
    let device = Supervisor::on_wasm().start().await;
    let mut logs = device.read_logs().await;
    device.set_target(&target(7, &hello())).await;
    let greeting = logs.until_message("the server says: Hello!").await;
    assert_eq!(greeting["serviceName"], "client");

    let status = device.until_applied().await;
    assert_eq!(status["release"], "commit1");
    assert_eq!(status["overallDownloadProgress"], Value::Null);
    let containers = status["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 2);
    for container in containers {
        assert_eq!(
            (&container["status"], &container["appId"]),
            (&json!("Running"), &json!(7))
        );
        let created = container["createdAt"].as_str().unwrap();
        assert!(created.len() == 24 && created.ends_with('Z'), "{created}");
    }
    assert_eq!(status["images"].as_array().unwrap().len(), 2);

    let apps = device.json("/v2/applications/state").await;
    let app = &apps["app7"];
    assert_eq!(
        (&app["appId"], &app["commit"]),
        (&json!(7), &json!("commit1"))
    );
    for name in ["server", "client"] {
        let service = &app["services"][name];
        assert_eq!(
            (
                &service["status"],
                &service["releaseId"],
                &service["downloadProgress"]
            ),
            (&json!("Running"), &json!(1), &Value::Null)
        );
    }
    let app = device.json("/v2/applications/7/state").await;
    assert_eq!(app["commit"], "commit1");
    assert_eq!(
        app["local"],
        json!({"7": {"services": {
            "1": {"status": "Running", "releaseId": 1, "download_progress": null},
            "2": {"status": "Running", "releaseId": 1, "download_progress": null},
        }}})
    );

    let by_name = device.json("/v2/containerId").await;
    for (name, id) in ids(&status) {
        assert_eq!(by_name["services"][&name], json!(id));
        let one = device
            .json(&format!("/v2/containerId?service={name}"))
            .await;
        assert_eq!(one, json!({"status": "success", "containerId": id}));
    }
    let state = device.json("/v1/device").await;
    assert_eq!(
        (&state["status"], &state["commit"]),
        (&json!("Idle"), &json!("commit1"))
    );
    assert_eq!(state["update_pending"], false);
    assert_eq!(device.get("/v1/healthy").await.status, 200);
}

/// Without being killed: that would only happen after their ten minutes.
#[tokio::test]
async fn the_sample_services_end_when_they_receive_the_signal() {
    let device = Supervisor::on_wasm().start().await;
    let mut logs = device.read_logs().await;
    let mut patient = hello();
    for service in &mut patient {
        service["stop_grace_period"] = json!("10m");
    }
    device.set_target(&target(7, &patient)).await;
    logs.until_message("the server says: Hello!").await;
    device.until_applied().await;
    device.set_target(&json!({"local": {"apps": {}}})).await;
    let mut messages = Vec::new();
    while messages.len() < 2 {
        let line = logs.until_message("good bye").await;
        messages.push(line["serviceName"].as_str().unwrap().to_owned());
    }
    messages.sort();
    assert_eq!(messages, ["client", "server"]);
    let status = device.until_applied().await;
    assert_eq!(status["containers"], json!([]));
}

#[tokio::test]
async fn replacing_one_service_leaves_the_other_as_it_is() {
    let device = Supervisor::on_wasm().start().await;
    let mut services = hello();
    device.set_target(&target(1, &services)).await;
    let before = ids(&device.until_applied().await);
    let processes = services_of(device.state_dir());

    services[1]["environment"] = json!({"CHANGED": "yes"});
    device.set_target(&target(1, &services)).await;
    let after = ids(&device.until_applied().await);
    assert_eq!(after[1], before[1], "the server was not to be touched");
    assert_eq!(
        (&after[0].0, &before[0].0),
        (&"client".into(), &"client".into())
    );
    assert_ne!(after[0].1, before[0].1, "the client was to be replaced");
    let left = services_of(device.state_dir());
    assert_eq!(processes.iter().filter(|pid| left.contains(pid)).count(), 1);
}

#[tokio::test]
async fn the_same_target_again_changes_nothing() {
    let device = Supervisor::on_wasm().start().await;
    device.set_target(&target(1, &hello())).await;
    let before = ids(&device.until_applied().await);
    device.set_target(&target(1, &hello())).await;
    assert_eq!(ids(&device.until_applied().await), before);
}

#[tokio::test]
async fn a_new_release_of_the_same_services_keeps_their_containers() {
    let device = Supervisor::on_wasm().start().await;
    let mut first = target(1, &hello());
    device.set_target(&first).await;
    let before = ids(&device.until_applied().await);
    first["local"]["apps"]["1"]["commit"] = json!("commit2");
    first["local"]["apps"]["1"]["releaseId"] = json!(2);
    device.set_target(&first).await;
    let status = device.until_applied().await;
    assert_eq!(ids(&status), before);
    assert_eq!(status["release"], "commit2");
}

#[tokio::test]
async fn an_empty_target_ends_everything() {
    let device = Supervisor::on_wasm().start().await;
    device.set_target(&target(1, &hello())).await;
    device.until_applied().await;
    device.set_target(&json!({"local": {"apps": {}}})).await;
    let status = device.until_applied().await;
    assert_eq!(status["containers"], json!([]));
    assert_eq!(device.json("/v2/applications/state").await, json!({}));
    until("the services to be gone", || async {
        let left = services_of(device.state_dir());
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn the_target_is_shown_as_it_was_set() {
    let device = Supervisor::on_wasm().start().await;
    let nothing = device.json("/v2/local/target-state").await;
    assert_eq!(nothing["status"], "success");
    assert_eq!(nothing["state"]["local"]["apps"], json!({}));
    assert_eq!(nothing["state"]["local"]["name"], "local");

    let set = target(5, &hello());
    device.set_target(&set).await;
    let shown = device.json("/v2/local/target-state").await;
    let (shown, set) = (&shown["state"]["local"], &set["local"]);
    assert_eq!(shown["name"], set["name"]);
    assert_eq!(shown["config"]["SUPERVISOR_LOCAL_MODE"], "true");
    let (shown, set) = (&shown["apps"]["5"], &set["apps"]["5"]);
    for key in ["name", "commit", "releaseId", "volumes", "networks"] {
        assert_eq!(shown[key], set[key], "{key}");
    }
    for id in ["1", "2"] {
        let (shown, set) = (&shown["services"][id], &set["services"][id]);
        for key in [
            "serviceName",
            "imageId",
            "image",
            "environment",
            "labels",
            "running",
        ] {
            assert_eq!(shown[key], set[key], "{key}");
        }
    }
}

#[tokio::test]
async fn an_unsupported_field_is_a_warning_in_the_answer() {
    let device = Supervisor::on_wasm().start().await;
    let mut services = hello();
    services[0]["build"] = json!(".");
    services[1]["privileged"] = json!(true);
    let answer = device.set_target(&target(1, &services)).await.json();
    assert_eq!(
        (&answer["status"], &answer["message"]),
        (&json!("success"), &json!("OK"))
    );
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("build"), "{answer}");
    let quiet = device.set_target(&target(1, &hello())).await;
    assert_eq!(quiet.text, r#"{"status":"success","message":"OK"}"#);
}

/// Returns the key of a service of app 1, taken from its output.
async fn service_key(device: &Supervisor) -> String {
    let mut logs = device.read_logs().await;
    let dump = |name: &str| {
        let label = json!({"io.platform.features.supervisor-api": "1"});
        service(
            name,
            &guest("guest"),
            &json!({"command": ["dump"], "labels": label}),
        )
    };
    let mut both = target(1, &[dump("one")]);
    both["local"]["apps"]["2"] = target(2, &[dump("two")])["local"]["apps"]["2"].clone();
    device.set_target(&both).await;
    let prefix = "variable PLATFORM_SUPERVISOR_API_KEY=";
    loop {
        let line = logs.until_message(prefix).await;
        if line["serviceName"] == "one" {
            return line["message"].as_str().unwrap()[prefix.len()..].to_owned();
        }
    }
}

async fn with_key(device: &Supervisor, path: &str, key: &str) -> Answer {
    device
        .send(device.request_without_key("GET", path).bearer_auth(key))
        .await
}

#[tokio::test]
async fn a_services_key_shows_its_own_app_and_no_other() {
    let device = Supervisor::on_wasm().start().await;
    let key = service_key(&device).await;
    device.until_applied().await;

    let all = device.json("/v2/applications/state").await;
    assert_eq!(all.as_object().unwrap().len(), 2);
    let own = with_key(&device, "/v2/applications/state", &key)
        .await
        .json();
    assert_eq!(
        own.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["app1"]
    );

    assert_eq!(
        with_key(&device, "/v2/applications/1/state", &key)
            .await
            .status,
        200
    );
    let other = with_key(&device, "/v2/applications/2/state", &key).await;
    assert_eq!(other.status, 409);
    assert_eq!(
        other.failure().as_deref(),
        Some("Application ID does not exist: 2")
    );
    // Endpoints that name no app accept any valid key.
    assert_eq!(with_key(&device, "/v1/device", &key).await.status, 200);

    let regenerate = device
        .request_without_key("POST", "/v1/regenerate-api-key")
        .bearer_auth(&key);
    let new = device.send(regenerate).await.text;
    assert_eq!(with_key(&device, "/v1/device", &key).await.status, 401);
    let own = with_key(&device, "/v2/applications/state", &new)
        .await
        .json();
    assert_eq!(own.as_object().unwrap().len(), 1);
    assert_eq!(
        device.get("/v1/device").await.status,
        200,
        "the device's own key stays"
    );
}
