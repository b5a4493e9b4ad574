//! Plugins that are called for events on a device, and one that postpones its updates.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{RecordedCloud, Supervisor, guest, until};

const COMMIT: &str = "0c1d2e3f405162738495a6b7c8d9e0f1";
/// The number of the app in the recorded release.
const APP: u64 = 4;
const POLICY: &str = "[plugins.update-hold]\nroutes = [\"/v3/update-hold\"]\ngrants = [\"store\"]\n\
    events = [\"start\", \"schedule\", \"services\", \"target\", \"connection\", \"update-gate\"]\n";

/// A device that follows a cloud and has the example `update-hold`.
struct Story {
    cloud: RecordedCloud,
    device: Supervisor,
    folder: TempDir,
}

impl Story {
    async fn begin() -> Story {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("plugins")).unwrap();
        install(folder.path());
        fs::write(path("policy.toml"), POLICY).unwrap();
        let cloud = RecordedCloud::start(&guest("guest")).await;
        let device = Supervisor::on_wasm()
            .config_json(cloud.config_json())
            .argument("--plugin-dir")
            .argument(path("plugins").display().to_string())
            .argument("--policy")
            .argument(path("policy.toml").display().to_string())
            .argument("--allow-unpinned")
            .start()
            .await;
        let story = Story {
            cloud,
            device,
            folder,
        };
        story.until_runs(COMMIT).await;
        story
    }

    /// Sets another release in the cloud, and has the device poll.
    async fn release(&self, commit: &str) {
        self.cloud.release(commit, |service| {
            service["composition"]["command"] = json!(["print-and-wait", commit]);
        });
        let answer = self.device.post("/v1/update", &json!({})).await;
        assert_eq!(answer.status, 204);
    }

    async fn until_runs(&self, commit: &str) {
        until("the release to run", || async {
            let status = self.device.json("/v2/state/status").await;
            if status["release"] == commit && status["appState"] == "applied" {
                Ok(())
            } else {
                Err((status, self.device.log()))
            }
        })
        .await;
    }

    /// Returns the events that the plugin was called for, one line each, the oldest first.
    async fn events(&self) -> Vec<String> {
        let state = self.device.json("/v3/update-hold").await;
        let events = state["events"].as_array().unwrap().iter();
        events
            .map(|event| event.as_str().unwrap().to_owned())
            .collect()
    }

    async fn until_events(&self, expected: &[&str]) {
        until("the plugin to be called", || async {
            let events = self.events().await;
            let is_there = |line: &&str| events.iter().any(|event| event == line);
            if expected.iter().all(is_there) {
                Ok(())
            } else {
                Err(events)
            }
        })
        .await;
    }

    /// Waits until the last change of the service that the plugin was called for is to this state. All changes that it was called for fit
    /// together, whichever states were too short to be seen.
    async fn until_service_is(&self, expected: &str) {
        until("the plugin to be called", || async {
            let events = self.events().await;
            let changes: Vec<_> = events
                .iter()
                .filter_map(|line| line.strip_prefix("services main ")?.split_once(" -> "))
                .collect();
            let fit = changes.windows(2).all(|pair| pair[0].1 == pair[1].0);
            assert!(fit, "{events:?}");
            match changes.last() {
                Some((_, status)) if *status == expected => Ok(()),
                _ => Err(events),
            }
        })
        .await;
    }

    /// Waits until the plugin was called for exactly these changes of the connection to the cloud.
    async fn until_connections(&self, expected: &[&str]) {
        until("the plugin to be called", || async {
            let events = self.events().await;
            let connections = events.iter().filter(|line| line.starts_with("connection "));
            if connections.eq(expected) {
                Ok(())
            } else {
                Err(events)
            }
        })
        .await;
    }

    async fn hold(&self) {
        let hold = json!({ "reason": "the press is running", "seconds": 600 });
        let request = self.device.request("PUT", "/v3/update-hold").json(&hold);
        let answer = self.device.send(request).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    /// Waits until the plan shows that the plugin delays the update.
    async fn until_postponed(&self) -> Value {
        until("the update to wait", || async {
            let plan = self.device.json("/v3/plan").await;
            let steps = plan["steps"].as_array().unwrap();
            let mut blockers = steps.iter().flat_map(|step| {
                let blockers = step["blockedBy"].as_array();
                blockers.unwrap().clone()
            });
            blockers
                .find(|blocker| blocker["kind"] == "update-gate")
                .ok_or(plan)
        })
        .await
    }
}

fn install(folder: &Path) {
    let component = guest("update_hold");
    fs::copy(component, folder.join("plugins/update-hold.wasm")).unwrap();
}

#[tokio::test]
async fn a_plugin_is_called_for_what_happens_on_the_device() {
    let story = Story::begin().await;
    story
        .until_events(&["start, first of this boot: true"])
        .await;
    story.release("c2").await;
    story.until_runs("c2").await;
    story
        .until_events(&["update-gate main", "target Reached"])
        .await;
    let report = story.device.json("/v3/plugins").await;
    let plugins = report["plugins"].as_array().unwrap();
    let plugin = plugins
        .iter()
        .find(|plugin| plugin["name"] == "update-hold");
    assert_eq!(
        plugin.unwrap()["events"],
        json!([
            "start",
            "schedule",
            "services",
            "target",
            "connection",
            "update-gate"
        ])
    );
    // It is installed again while the device runs: its bytes make it another version.
    let file = story.folder.path().join("plugins/update-hold.wasm");
    let mut component = fs::read(&file).unwrap();
    component.extend([0, 2, 1, b'x']);
    fs::write(&file, component).unwrap();
    story
        .until_events(&["start, first of this boot: false"])
        .await;
}

#[tokio::test]
async fn a_plugin_is_called_for_its_schedule_and_for_changes_of_services_and_of_the_connection() {
    let mut story = Story::begin().await;
    let service = json!({ "serviceName": "main" });
    for (verb, status) in [("stop-service", "exited"), ("start-service", "Running")] {
        let path = format!("/v2/applications/{APP}/{verb}");
        assert_eq!(story.device.post(&path, &service).await.status, 200);
        story.until_service_is(status).await;
    }
    story.until_events(&["schedule count-down"]).await;
    // The device checks every 10 s whether anybody listens there.
    story.until_connections(&[]).await;
    story.cloud.go();
    story.until_connections(&["connection false"]).await;
    story.cloud.come_back().await;
    story
        .until_connections(&["connection false", "connection true"])
        .await;
}

#[tokio::test]
async fn a_gate_holds_up_an_update_and_says_why() {
    let story = Story::begin().await;
    let mut events = story.device.read_events().await;
    story.hold().await;
    story.release("c2").await;
    let blocker = story.until_postponed().await;
    assert_eq!(blocker["plugin"], "update-hold");
    assert_eq!(
        blocker["message"],
        "the plugin `update-hold` postpones the update: the press is running"
    );
    let seen = events.until("update-postponed", |_| true).await;
    let data = &seen.last().unwrap().data;
    assert_eq!(data["plugin"], "update-hold");
    assert_eq!(data["message"], "the press is running");
    let status = story.device.json("/v2/state/status").await;
    assert_eq!(status["containers"][0]["status"], "Running", "{status}");
    // Nothing delays it any longer: the device asks again.
    let request = story.device.request("DELETE", "/v3/update-hold");
    let released = story.device.send(request).await;
    assert_eq!(released.status, 200);
    story.until_runs("c2").await;
}

#[tokio::test]
async fn force_passes_a_gate() {
    let story = Story::begin().await;
    story.hold().await;
    story.release("c2").await;
    story.until_postponed().await;
    let answer = story
        .device
        .post("/v1/update", &json!({ "force": true }))
        .await;
    assert_eq!(answer.status, 204);
    story.until_runs("c2").await;
}

#[tokio::test]
async fn a_gate_that_is_removed_or_loses_its_grant_holds_up_nothing() {
    let without_grant = POLICY.replace(", \"update-gate\"", "");
    for policy in [None, Some(without_grant)] {
        let story = Story::begin().await;
        story.hold().await;
        story.release("c2").await;
        story.until_postponed().await;
        let path = |name: &str| story.folder.path().join(name);
        match &policy {
            None => fs::remove_file(path("plugins/update-hold.wasm")).unwrap(),
            Some(policy) => fs::write(path("policy.toml"), policy).unwrap(),
        }
        story.until_runs("c2").await;
        let report = story.device.json("/v3/plugins").await;
        let plugins = report["plugins"].as_array().unwrap();
        let plugin = plugins
            .iter()
            .find(|plugin| plugin["name"] == "update-hold");
        let states = plugin.map(|plugin| (plugin["state"].as_str(), plugin["refused"].as_str()));
        match states {
            None => assert!(policy.is_none(), "{report}"),
            Some((state, reason)) => {
                assert!(policy.is_some(), "{report}");
                assert_eq!(state, Some("refused"), "{report}");
                assert!(reason.unwrap().contains("`update-gate`"), "{report}");
            }
        }
    }
}
