//! A plugin that calls the device's own API on behalf of its caller: the example `site-panel`.

use std::fs;

use serde_json::{Value, json};
use tests::{LogReader, Supervisor, guest, service, target};

const VARIABLE: &str = "variable PLATFORM_SUPERVISOR_API_KEY=";

/// A device with the plugin; its policy names these routes, and its configuration this one for the state.
async fn device(routes: &str, state: &str) -> (Supervisor, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("plugins")).unwrap();
    fs::copy(guest("site_panel"), path("plugins/site-panel.wasm")).unwrap();
    let policy = format!(
        "[plugins.site-panel]\nroutes = [\"/v3/site-panel/*\"]\ngrants = [\"api\"]\napi = [{routes}]\n"
    );
    fs::write(path("policy.toml"), policy).unwrap();
    let device = Supervisor::on_wasm()
        .plugins_of(folder.path())
        .configuration(format!("[plugins.site-panel]\nstate = \"{state}\"\n"))
        .start()
        .await;
    (device, folder)
}

/// An app whose service prints its key to the API.
fn app() -> Value {
    let label = "io.platform.features.supervisor-api";
    let dump = json!({"command": ["dump"], "labels": {label: "1"}});
    target(1, &[service("main", &guest("guest"), &dump)])
}

async fn key_of(logs: &mut LogReader) -> String {
    let line = logs.until_message(VARIABLE).await;
    line["message"].as_str().unwrap()[VARIABLE.len()..].to_owned()
}

#[tokio::test]
async fn a_plugin_calls_the_devices_own_api_on_behalf_of_its_caller() {
    let routes = "\"GET /v2/state/status\", \"POST /v1/restart\"";
    let (device, _folder) = device(routes, "/v2/state/status").await;
    let mut logs = device.read_logs().await;
    device.set_target(&app()).await;
    let key = key_of(&mut logs).await;
    device.until_applied().await;
    let panel = device.json("/v3/site-panel").await;
    let expected = json!({ "state": "applied", "services": ["main Running"] });
    assert_eq!(panel, expected);

    let restart = async |app: u64| {
        let path = format!("/v3/site-panel/{app}/restart");
        let request = device.request_without_key("POST", &path);
        device.send(request.bearer_auth(&key)).await
    };
    let restarted = restart(1).await;
    assert_eq!((restarted.status, &*restarted.text), (200, "restarted"));
    // The plugin has no more rights than the service that calls it.
    let other = restart(2).await;
    assert_eq!(other.status, 403, "{}", other.text);
}

#[tokio::test]
async fn a_plugin_that_asks_itself_does_not_do_so_for_ever() {
    let (device, _folder) = device("\"GET /v3/site-panel\"", "/v3/site-panel").await;
    let answer = device.get("/v3/site-panel").await;
    assert_eq!(answer.status, 502, "{}", answer.text);
    let expected = "the device's own API answered 50";
    assert!(answer.text.contains(expected), "{}", answer.text);
    // Its calls are over: their slots are free.
    let answer = device.get("/v3/site-panel").await;
    assert_eq!(answer.status, 502, "{}", answer.text);
    assert_eq!(device.get("/ping").await.status, 200);
}

#[tokio::test]
async fn an_endless_answer_costs_only_the_plugin_that_requested_it() {
    let (device, _folder) = device("\"GET /v3/events\"", "/v3/events").await;
    let endless = device.get("/v3/site-panel");
    let ping = async {
        for _ in 0..20 {
            assert_eq!(device.get("/ping").await.status, 200);
        }
    };
    let (endless, ()) = tokio::join!(endless, ping);
    assert!((500..600).contains(&endless.status), "{}", endless.text);
    // Its reader of events is gone.
    let metrics = device.get("/metrics").await.text;
    assert!(metrics.contains("supervisor_"), "{metrics}");
}
