//! The plugins of version 1.4 for its capabilities, events and actions, as far as the ones in each language do not use
//! them.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Request;
use http_body_util::Full;
use plugins::{
    ApiError, ApiResponse, DeviceApi, GateVerdict, HttpClient, HttpError, HttpResponse,
    InstalledRelease, OutgoingRequest, PendingUpdate, PluginApiRequest, PluginEvent, Postponement,
};
use serde_json::{Value, json};
use tests::PseudoTerminal;

use super::*;
use crate::fixture::text;

const VERSION: &str = "1.4";
/// What is kept for them.
pub(super) const PLUGINS: [&str; 12] = [
    "acme_rails",
    "door_relay",
    "host_config",
    "line_meter",
    "rail_panel",
    "rauc_update",
    "release_check",
    "site_panel",
    "tags",
    "tank_gauge",
    "update_hold",
    "weather",
];

const POLICY: &str = r#"
[plugins.acme-rails]
grants = ["store"]

[plugins.door-relay]
grants = ["gpio", "i2c", "metrics"]
events = ["schedule"]
gpio = [
    { name = "relay", chip = "simulated", line = "RELAY", direction = "out" },
    { name = "door", chip = "simulated", line = "DOOR", direction = "in" },
]
i2c = [{ name = "thermometer", bus = 1, address = 0x48 }]

[plugins.host-config]
grants = ["device", "proxy-redirector", "host-name", "update-lock"]

[plugins.line-meter]
grants = ["serial", "dbus"]
serial = ["PORT"]
[[plugins.line-meter.dbus]]
service = "org.freedesktop.hostname1"
paths = ["/org/freedesktop/hostname1"]
members = ["org.freedesktop.DBus.Properties.Get"]

[plugins.rail-panel]
grants = ["actions"]
actions = ["acme-rails/list", "acme-rails/set"]

[plugins.rauc-update]
grants = ["dbus", "store"]
[[plugins.rauc-update.dbus]]
service = "de.pengutronix.rauc"
paths = ["/"]
members = ["de.pengutronix.rauc.Installer.*", "org.freedesktop.DBus.Properties.GetAll"]

[plugins.release-check]
grants = ["store"]
events = ["health-gate"]

[plugins.site-panel]
grants = ["api"]
api = ["GET /v2/state/status"]

[plugins.tags]
grants = ["cloud"]
records = ["device_tag"]

[plugins.tank-gauge]
grants = ["metrics", "report"]

[plugins.update-hold]
grants = ["store"]
events = ["start", "schedule", "services", "target", "connection", "update-gate"]

[plugins.weather]
grants = ["http"]
http = ["api.weather.example"]
"#;

/// A server, which has one answer.
struct WeatherServer;

impl HttpClient for WeatherServer {
    fn send(&self, outgoing: OutgoingRequest) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        assert_eq!(
            outgoing.request.uri(),
            "https://api.weather.example/now/berlin"
        );
        let body = b"{\"celsius\":21.5}".to_vec();
        let answer = HttpResponse {
            status: 200,
            headers: Vec::new(),
            body,
        };
        async { Ok(answer) }.boxed()
    }
}

/// The device's own API, of which one request is answered.
struct StateApi;

impl DeviceApi for StateApi {
    fn send(&self, call: PluginApiRequest) -> BoxFuture<'_, Result<ApiResponse, ApiError>> {
        assert_eq!(call.request.uri(), "/v2/state/status");
        let state = json!({
            "appState": "applied",
            "containers": [{ "serviceName": "press", "status": "Running" }],
        });
        let answer = ApiResponse {
            status: 200,
            content_type: Some("application/json".to_owned()),
            body: state.to_string().into_bytes(),
        };
        async { Ok(answer) }.boxed()
    }
}

/// Starts a device with all of these plugins, a meter on its serial line, a door, a thermometer, and RAUC.
async fn device(meter: &PseudoTerminal) -> Fixture {
    let setup = setup();
    setup.gpio.add("RELAY", false);
    setup.gpio.add("DOOR", true);
    setup.i2c.add("1", 0x48);
    assert!(setup.i2c.set("1", 0x48, 0, &[0x19, 0x80]));
    let string = |text: &str| json!({ "type": "s", "data": text });
    let properties = "org.freedesktop.DBus.Properties";
    setup.os.set_method(
        "org.freedesktop.hostname1",
        "/org/freedesktop/hostname1",
        properties,
        "Get",
        json!([string("Pump house")]).to_string(),
    );
    let rauc = "de.pengutronix.rauc";
    let state = json!([{
        "Operation": string("idle"),
        "LastError": string(""),
        "Progress": { "type": "(isi)", "data": [0, "", 0] },
        "Compatible": string("acme-gate"),
        "BootSlot": string("A"),
    }]);
    let slot = |name: &str, state: &str, version: &str| {
        json!({
            "class": string("rootfs"),
            "bootname": string(name),
            "state": string(state),
            "bundle.version": string(version),
            "status": string("ok"),
        })
    };
    let slots = json!([[
        ["rootfs.0", slot("A", "booted", "1.0.0")],
        ["rootfs.1", slot("B", "inactive", "2.0.0")],
    ]]);
    let installer = "de.pengutronix.rauc.Installer";
    setup
        .os
        .set_method(rauc, "/", properties, "GetAll", state.to_string());
    setup
        .os
        .set_method(rauc, "/", installer, "GetSlotStatus", slots.to_string());
    let mut setup = setup
        .answers(WeatherServer, StateApi)
        .policy(&POLICY.replace("PORT", meter.name()))
        .config(&format!(
            "[line-meter]\nport = \"{}\"\n[weather]\nserver = \"https://api.weather.example\"\n",
            meter.name()
        ));
    for name in PLUGINS {
        setup = setup.file(&format!("{name}.wasm"), &kept_plugin(VERSION, name));
    }
    setup.start().await
}

/// Returns the JSON of an answer that is not a failure.
fn body(answer: (StatusCode, String)) -> Value {
    let (status, body) = answer;
    assert_eq!(status, StatusCode::OK, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Returns status and body of a request with JSON.
async fn send(device: &Fixture, method: &str, path: &str, body: &Value) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json");
    let body = Full::<Bytes>::from(body.to_string());
    text(device.call(request.body(body).unwrap()).await).await
}

#[tokio::test]
async fn plugins_of_1_4_use_each_capability_event_and_action_that_came_with_it() {
    let meter = PseudoTerminal::open();
    let device = device(&meter).await;

    let answers = async {
        assert_eq!(meter.read(6).await, b"READ\r\n");
        meter.write(b"OK 230.1\r\n");
    };
    let (reading, ()) = tokio::join!(device.get("/v3/line-meter"), answers);
    assert_eq!(
        body(reading),
        json!({ "volts": 230.1, "host": "Pump house" })
    );

    let door = json!({ "is_unlocked": false, "is_open": true, "celsius": 25.5 });
    assert_eq!(body(device.get("/v3/door").await), door);
    let switched = device.post("/v3/rail-panel/5v/on", "").await;
    assert_eq!(body(switched), json!({ "switchedBy": "rail-panel" }));
    let panel = json!({ "state": "applied", "services": ["press Running"] });
    assert_eq!(body(device.get("/v3/site-panel").await), panel);
    let weather = json!({ "celsius": 21.5 });
    assert_eq!(body(device.get("/v3/weather/berlin").await), weather);
    let (status, _) = device.post("/v3/tanks/north", "{\"level\":0.5}").await;
    assert_eq!(status, StatusCode::OK);
    let fields: Vec<_> = device.report("tank-gauge").fields;
    let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["last_level", "last_tank"]);

    // This device has no cloud, no name and no apps.
    let (_, answer) = device.get("/v2/device/tags").await;
    assert!(answer.contains("this device has no cloud"), "{answer}");
    let host_name = json!({ "network": { "hostname": "kitchen" } });
    for (method, change) in [("GET", json!(null)), ("PATCH", host_name)] {
        let (_, answer) = send(&device, method, "/v1/device/host-config", &change).await;
        let expected = "this part of the supervisor is not available";
        assert!(answer.contains(expected), "{method}: {answer}");
    }

    updates_the_os(&device).await;
    receives_events(&device).await;
    judges_releases(&device).await;
    for name in PLUGINS {
        let report = device.report(&name.replace('_', "-"));
        assert_eq!(report.interface, Some(format!("{VERSION}.0")), "{name}");
        assert_eq!((report.calls > 0, report.failures), (true, 0), "{name}");
    }
}

/// The action `os-update`.
async fn updates_the_os(device: &Fixture) {
    let status = device.plugins.os_status().await.unwrap();
    assert_eq!(
        (status.running.as_str(), status.staged.as_deref()),
        ("1.0.0", Some("2.0.0"))
    );
}

/// The gate for updates and the other events.
async fn receives_events(device: &Fixture) {
    let hold = json!({ "reason": "the press is running", "seconds": 600 });
    let (status, _) = send(device, "PUT", "/v3/update-hold", &hold).await;
    assert_eq!(status, StatusCode::OK);
    let update = PendingUpdate {
        app_id: 7,
        app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        services: vec!["press".to_owned()],
        running_commit: None,
        target_commit: None,
    };
    let expected = Postponement {
        plugin: "update-hold".to_owned(),
        reason: "the press is running".to_owned(),
        delay: Duration::from_secs(10),
    };
    assert_eq!(device.plugins.postponement(&update).await, Some(expected));
    device.plugins.publish(&PluginEvent::Connection(false));
    let temperature = PluginEvent::Schedule("temperature".to_owned());
    device.plugins.publish(&temperature);
    let expected = ["start, first of this boot: false", "connection false"];
    tests::until("the events", || async {
        let state = body(device.get("/v3/update-hold").await);
        let events = state["events"].as_array().unwrap();
        let is_there = |line: &&str| events.iter().any(|event| event == *line);
        if expected.iter().all(is_there) {
            Ok(())
        } else {
            Err(state)
        }
    })
    .await;
    device
        .until("the temperature", |plugins| {
            let mut stats = plugins.stats().into_iter();
            let door = stats.find(|stats| stats.name == "door-relay");
            let mut metrics = door.into_iter().flat_map(|door| door.metrics);
            metrics.any(|metric| metric.name == "celsius" && metric.value.as_f64() == 25.5)
        })
        .await;
}

/// The gate for releases.
async fn judges_releases(device: &Fixture) {
    let release = InstalledRelease {
        app_id: 7,
        app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        services: vec!["press".to_owned()],
        commit: "c1".to_owned(),
    };
    let verdict = device.plugins.judge_release(&release).await;
    assert!(matches!(verdict, GateVerdict::NotYet { .. }), "{verdict:?}");
    let report = json!({ "healthy": true });
    let (status, _) = send(device, "PUT", "/v3/release-check/7", &report).await;
    assert_eq!(status, StatusCode::OK);
    let verdict = device.plugins.judge_release(&release).await;
    assert_eq!(verdict, GateVerdict::Healthy);
}
