//! Fields that a plugin adds to the device's reports to its cloud: the example `tank-gauge`, with a recorded cloud and
//! with the real one.

use std::fs;
use std::path::PathBuf;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{FleetCloud, RecordedCloud, Supervisor, guest, until};

use crate::with_its_cloud::{BOARD, known};

const POLICY: &str =
    "[plugins.tank-gauge]\nroutes = [\"/v3/tanks/*\"]\ngrants = [\"metrics\", \"report\"]\n";

/// A device with the plugin.
struct Gauge {
    device: Supervisor,
    folder: TempDir,
}

impl Gauge {
    async fn start(config: Value) -> Gauge {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("plugins")).unwrap();
        fs::copy(guest("tank_gauge"), path("plugins/tank-gauge.wasm")).unwrap();
        fs::write(path("policy.toml"), POLICY).unwrap();
        let device = Supervisor::on_wasm()
            .config_json(config)
            .argument("--plugin-dir")
            .argument(path("plugins").display().to_string())
            .argument("--policy")
            .argument(path("policy.toml").display().to_string())
            .argument("--allow-unpinned")
            .start()
            .await;
        Gauge { device, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn read(&self, tank: &str, level: f64) {
        let path = format!("/v3/tanks/{tank}");
        let answer = self.device.post(&path, &json!({ "level": level })).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    /// Returns its fields in `GET /v3/plugins`.
    async fn fields(&self) -> Value {
        let plugins = self.device.json("/v3/plugins").await;
        let plugins = plugins["plugins"].as_array().unwrap();
        let mut plugins = plugins.iter();
        let gauge = plugins.find(|plugin| plugin["name"] == "tank-gauge");
        gauge.unwrap()["fields"].clone()
    }
}

#[tokio::test]
async fn the_device_sends_fields_of_a_plugin_until_its_grant_is_removed() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let gauge = Gauge::start(cloud.config_json()).await;
    let until_reported = async |what: &str, fields: Value| {
        until(what, || async {
            let report = cloud.reported_state();
            if report["plugin_fields"] == fields {
                Ok(())
            } else {
                Err((report, gauge.device.log()))
            }
        })
        .await;
    };
    until_reported("the cloud to know that there is nothing", json!({})).await;
    gauge.read("north", 0.4).await;
    let expected = json!([
        { "name": "last_level", "value": 40, "unit": "%" }, { "name": "last_tank", "value": "north" },
    ]);
    assert_eq!(gauge.fields().await, expected);
    let expected = json!({ "tank-gauge": {
        "last_level": { "value": 40, "unit": "%" }, "last_tank": { "value": "north" },
    } });
    until_reported("the cloud to know the reading", expected).await;

    let without = POLICY.replace(", \"report\"", "");
    fs::write(gauge.file("policy.toml"), without).unwrap();
    until_reported("the reading to go with the grant", json!({})).await;
    assert_eq!(gauge.fields().await, json!([]));
}

#[tokio::test]
async fn the_cloud_has_the_fields_of_a_plugin_until_the_plugin_is_removed() {
    // Nothing is deployed, so no registry is used.
    let cloud = FleetCloud::start("127.0.0.1:1").await;
    let fleet = cloud.fleet("pump", BOARD).await;
    let gauge = Gauge::start(cloud.config_json(fleet, BOARD).await).await;
    gauge.read("north", 0.635).await;
    let rows = async || {
        let path =
            "/v7/device_plugin_field?$orderby=name&$select=plugin,name,value,value_type,unit";
        cloud.rows(path).await
    };
    let expected = [
        json!({ "plugin": "tank-gauge", "name": "last_level", "value": "63.5", "value_type": "number", "unit": "%" }),
        json!({ "plugin": "tank-gauge", "name": "last_tank", "value": "north", "value_type": "text", "unit": null }),
    ];
    until("the reading to be in the cloud", || async {
        let rows = rows().await;
        if rows == expected {
            Ok(())
        } else {
            Err((rows, gauge.device.log()))
        }
    })
    .await;
    let uuid = known(&cloud).await["uuid"].clone();
    let words = ["device", "show", uuid.as_str().unwrap()];
    let shown = cloud.command_line(gauge.folder.path(), &words);
    let shown = String::from_utf8(shown.stdout).unwrap();
    let line = shown.lines().find(|line| line.contains("last_level"));
    let words: Vec<_> = line.unwrap_or(&shown).split_whitespace().collect();
    assert_eq!(words[..4], ["tank-gauge", "last_level", "63.5", "%"]);
    // Only the device writes them, with its report.
    let path = "/v7/device_plugin_field?$filter=id gt 0";
    let answer = cloud.request(Method::DELETE, path).send().await.unwrap();
    assert_eq!(answer.status(), 401);

    fs::remove_file(gauge.file("plugins/tank-gauge.wasm")).unwrap();
    until("the reading to go with the plugin", || async {
        let rows = rows().await;
        if rows.is_empty() {
            Ok(())
        } else {
            Err((rows, gauge.device.log()))
        }
    })
    .await;
}
