//! What a device reports to its cloud about itself.

use serde_json::{Value, json};
use tests::{CloudBehaviour, RecordedCloud, Supervisor, guest, services_of, until};

const APP: &str = "5f0ee0e1d1b84a1f9a6f5a7d3a1c9b20";
const COMMIT: &str = "0c1d2e3f405162738495a6b7c8d9e0f1";

async fn device_of(cloud: &RecordedCloud) -> Supervisor {
    let config = cloud.config_json();
    Supervisor::on_wasm().config_json(config).start().await
}

/// Waits until the reported state fits.
async fn until_reported(
    cloud: &RecordedCloud,
    device: &Supervisor,
    is: impl Fn(&Value) -> bool,
) -> Value {
    until("the device to say so", || async {
        let report = cloud.reported_state();
        if is(&report) {
            Ok(report)
        } else {
            Err((report, device.log()))
        }
    })
    .await
}

fn runs(report: &Value, commit: &str) -> bool {
    let release = &report["apps"][APP]["releases"][commit];
    report["apps"][APP]["release_uuid"] == commit
        && release["update_status"] == "done"
        && release["services"]["main"]["status"] == "Running"
}

#[tokio::test]
async fn the_device_reports_its_state_and_then_the_changes() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let mut device = device_of(&cloud).await;
    let report = until_reported(&cloud, &device, |report| runs(report, COMMIT)).await;
    assert_eq!(report["api_secret"], device.key());
    assert_eq!(report["supervisor_version"], "19.0.0");
    assert_eq!(
        (&report["status"], &report["provisioning_state"]),
        (&json!("Idle"), &json!(""))
    );
    assert!(report["memory_total"].as_u64().unwrap() > 0, "{report}");
    assert!(report["storage_total"].as_u64().unwrap() > 0, "{report}");
    assert!(report["cpu_usage"].as_u64().unwrap() <= 100, "{report}");
    let image = format!("file:{}", guest("guest").display());
    assert_eq!(
        report["apps"][APP]["releases"][COMMIT]["services"]["main"]["image"],
        image
    );
    for never in [
        "update_pending",
        "update_downloaded",
        "update_failed",
        "name",
    ] {
        assert_eq!(report.get(never), None);
    }

    let before = cloud.reports().len();
    cloud.release("c2", |service| service["environment"]["A"] = json!("2"));
    device.post("/v1/update", &json!({})).await;
    let report = until_reported(&cloud, &device, |report| runs(report, "c2")).await;
    assert_eq!(
        report["apps"][APP]["releases"].as_object().unwrap().len(),
        1
    );
    for report in &cloud.reports()[before..] {
        assert_eq!(report.get("os_version"), None, "{report}");
        assert_eq!(report.get("api_secret"), None, "{report}");
    }

    // The next run knows what was reported, but not after a reboot.
    device.kill().await;
    let before = cloud.reports().len();
    device.start_again().await;
    cloud.release("c3", |service| service["environment"]["A"] = json!("3"));
    device.post("/v1/update", &json!({})).await;
    until_reported(&cloud, &device, |report| runs(report, "c3")).await;
    for report in &cloud.reports()[before..] {
        assert_eq!(report.get("api_secret"), None, "{report}");
    }
    device.kill().await;
    let before = cloud.reports().len();
    let cache = device.host_root().join("run/supervisor/state-report-cache");
    std::fs::remove_file(cache).unwrap();
    device.start_again().await;
    until("all to be told again", || async {
        let reports = cloud.reports();
        match reports.get(before) {
            Some(report) if report["api_secret"] == device.key() => Ok(()),
            other => Err(other.cloned()),
        }
    })
    .await;
}

#[tokio::test]
async fn the_device_reports_developer_mode_to_the_cloud() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let device = Supervisor::on_wasm()
        .config_json(cloud.config_json())
        .argument("--allow-unpinned=true");
    let device = device.start().await;
    until_reported(&cloud, &device, |report| {
        report["status"] == "Developer mode: plugins are not pinned"
    })
    .await;
}

#[tokio::test]
async fn variables_switch_reports_of_measures_and_apps() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    cloud.change(|device| {
        device["config"] = json!({ "PLATFORM_SUPERVISOR_HARDWARE_METRICS": "false" });
    });
    let device = device_of(&cloud).await;
    let report = until_reported(&cloud, &device, |report| {
        runs(report, COMMIT) && report.get("memory_total") == Some(&Value::Null)
    })
    .await;
    assert_eq!(report["cpu_usage"], Value::Null);
    let before = cloud.reports().len();
    cloud.change(|device| {
        device["config"] = json!({ "PLATFORM_SUPERVISOR_LOCAL_MODE": "true" });
    });
    device.post("/v1/update", &json!({})).await;
    until("the fleet's services to be gone", || async {
        match services_of(device.state_dir()).len() {
            0 => Ok(()),
            left => Err(left),
        }
    })
    .await;
    // Measures by themselves would wait for five minutes.
    let key = device.post("/v1/regenerate-api-key", &json!({})).await.text;
    let report = until_reported(&cloud, &device, |report| report["api_secret"] == key).await;
    assert!(report["memory_total"].is_u64(), "{report}");
    for report in &cloud.reports()[before..] {
        assert_eq!(report.get("apps"), None, "{report}");
    }
}

#[tokio::test]
async fn a_report_that_is_refused_is_made_again_when_the_cloud_wants_it_and_as_things_are_then() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    // Polls would be refused as well, and the release never arrive: so the device gets the target
    // first.
    let device = device_of(&cloud).await;
    until_reported(&cloud, &device, |report| runs(report, COMMIT)).await;
    cloud.behave(CloudBehaviour::Refuses(429, Some("3".into())));
    device.post("/v1/regenerate-api-key", &json!({})).await;
    let refused = until("a report to be refused", || async {
        let requests = cloud.requests().into_iter();
        let refused =
            requests.filter(|request| request.path == "/device/v3/state" && request.status == 429);
        refused.last().ok_or(())
    })
    .await;
    cloud.behave(CloudBehaviour::Works);
    let again = until("a report to be taken", || async {
        let requests = cloud.requests().into_iter();
        let mut accepted = requests.filter(|request| {
            request.path == "/device/v3/state" && request.status == 200 && request.at > refused.at
        });
        accepted.next().ok_or(())
    })
    .await;
    assert!((again.at - refused.at).as_millis() >= 2900);
    assert_ne!(
        cloud.reported_state()["api_secret"],
        device.key(),
        "the key of before"
    );
}
