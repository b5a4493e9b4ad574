//! The same stories on Docker, with containers made from `busybox`.

use serde_json::{Value, json};
use tests::{Supervisor, target, until};

/// The image, in the registry that `cargo xtask test` started.
fn busybox() -> String {
    let registry = std::env::var("SUPERVISOR_TEST_REGISTRY").expect("a registry beside the engine");
    format!("{registry}/busybox:latest")
}

fn container(name: &str, more: &Value) -> Value {
    let mut service = json!({
        "serviceName": name, "imageId": 1, "image": busybox(), "environment": {}, "labels": {},
        "stop_grace_period": "1s",
    });
    for (key, value) in more.as_object().unwrap() {
        service[key] = value.clone();
    }
    service
}

fn id_of(status: &Value, service: &str) -> String {
    let containers = status["containers"].as_array().unwrap();
    let found = containers
        .iter()
        .find(|container| container["serviceName"] == service);
    found.unwrap()["containerId"].as_str().unwrap().to_owned()
}

/// Takes the services away again: the engine is shared with other tests, and nothing else would.
async fn leave_nothing(device: &Supervisor) {
    device.set_target(&json!({"local": {"apps": {}}})).await;
    let status = device.until_applied().await;
    assert_eq!(status["containers"], json!([]));
}

#[tokio::test]
async fn containers_talk_to_each_other_and_to_the_device_and_outlive_the_supervisor() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let mut device = builder.start().await;
    let mut logs = device.read_logs().await;
    let serve = "mkdir /www; echo a greeting > /www/index.html; exec httpd -f -p 8080 -h /www";
    // A busybox that is linked statically cannot resolve names by itself, but for `nslookup`.
    let ask = "while true; do \
                 server=$(nslookup server | grep ^Address | tail -n 1 | cut -d ' ' -f 2); \
                 timeout 5 wget -q -O - http://$server:8080/; \
                 timeout 5 wget -q -O - $PLATFORM_SUPERVISOR_ADDRESS/v2/version?apikey=$PLATFORM_SUPERVISOR_API_KEY; \
                 echo; sleep 1; \
               done";
    let label = json!({"io.platform.features.supervisor-api": "1"});
    let mut services = [
        container("server", &json!({"command": ["sh", "-c", serve]})),
        container(
            "client",
            &json!({"command": ["sh", "-c", ask], "labels": label}),
        ),
    ];
    device.set_target(&target(1, &services)).await;
    logs.until_message("a greeting").await;
    let version = r#"{"status":"success","version":"19.0.0"}"#;
    logs.until_message(version).await;
    let before = device.until_applied().await;

    services[1]["environment"] = json!({"CHANGED": "yes"});
    device.set_target(&target(1, &services)).await;
    let after = device.until_applied().await;
    assert_eq!(id_of(&after, "server"), id_of(&before, "server"));
    assert_ne!(id_of(&after, "client"), id_of(&before, "client"));

    assert_eq!(device.terminate().await.code(), Some(0));
    device.start_again().await;
    let again = device.until_applied().await;
    for service in ["server", "client"] {
        assert_eq!(id_of(&again, service), id_of(&after, service));
    }
    leave_nothing(&device).await;
}

#[tokio::test]
async fn one_app_may_have_containers_and_components() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let device = builder.start().await;
    let mut logs = device.read_logs().await;
    let component = tests::service(
        "component",
        &tests::guest("guest"),
        &json!({"command": ["print-and-wait", "a component"]}),
    );
    let shell = container(
        "shell",
        &json!({"command": ["sh", "-c", "echo a container; sleep 1000"]}),
    );
    device.set_target(&target(2, &[component, shell])).await;
    let mut said = [
        logs.until_message("a co").await,
        logs.until_message("a co").await,
    ]
    .map(|line| line["message"].as_str().unwrap().to_owned());
    said.sort();
    assert_eq!(said, ["a component", "a container"]);
    let status = device.until_applied().await;
    assert_eq!(status["containers"].as_array().unwrap().len(), 2);
    leave_nothing(&device).await;
}

#[tokio::test]
async fn an_image_that_no_registry_has_is_waited_for_and_holds_up_no_other_service() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let device = builder.start().await;
    let missing = container("missing", &json!({"image": format!("{}-none", busybox())}));
    let present = container("present", &json!({"command": ["sleep", "1000"]}));
    // Services of one app wait for all its images; another app does not.
    let mut both = target(3, &[missing]);
    both["local"]["apps"]["4"] = target(4, &[present])["local"]["apps"]["4"].clone();
    device.set_target(&both).await;
    until("the other app to run", || async {
        let apps = device.json("/v2/applications/state").await;
        if apps["app4"]["services"]["present"]["status"] == "Running" {
            Ok(())
        } else {
            Err(apps)
        }
    })
    .await;
    assert_eq!(
        device.json("/v2/state/status").await["appState"],
        "applying"
    );
    leave_nothing(&device).await;
}
