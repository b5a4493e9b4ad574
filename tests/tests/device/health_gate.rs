//! Releases that have to be healthy: according to a plugin that judges them, and to their own
//! health checks.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{RecordedCloud, Supervisor, guest, until};

const COMMIT: &str = "0c1d2e3f405162738495a6b7c8d9e0f1";
const POLICY: &str = "[plugins.release-check]\nroutes = [\"/v3/release-check/*\"]\ngrants = [\"store\"]\n\
    events = [\"health-gate\"]\n";

/// A device that follows a cloud.
struct Story {
    cloud: RecordedCloud,
    device: Supervisor,
    _folder: TempDir,
}

impl Story {
    async fn begin(change: impl FnOnce(&RecordedCloud), has_plugin: bool) -> Story {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("plugins")).unwrap();
        if has_plugin {
            let file = path("plugins/release-check.wasm");
            fs::copy(guest("release_check"), file).unwrap();
        }
        fs::write(path("policy.toml"), POLICY).unwrap();
        let cloud = RecordedCloud::start(&guest("guest")).await;
        change(&cloud);
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
            _folder: folder,
        };
        story.until_runs(COMMIT).await;
        story
    }

    /// Sets another release in the cloud, and has the device poll.
    async fn release(&self, commit: &str, change: impl FnOnce(&mut Value)) {
        self.cloud.release(commit, change);
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

    /// Returns the kinds and messages of blockers of releases.
    async fn blockers(&self) -> Vec<(String, String)> {
        let plan = self.device.json("/v3/plan").await;
        let unplanned = plan["unplanned"].as_array().unwrap().iter();
        let blockers = unplanned.flat_map(|entry| entry["blockedBy"].as_array().unwrap());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        blockers
            .map(|blocker| (text(&blocker["kind"]), text(&blocker["message"])))
            .collect()
    }

    /// Waits until no release is on trial.
    async fn until_judged(&self) {
        until("the release to be judged", || async {
            let blockers = self.blockers().await;
            if blockers.iter().all(|(kind, _)| kind != "release-on-trial") {
                Ok(())
            } else {
                Err((blockers, self.device.log()))
            }
        })
        .await;
    }

    async fn report(&self, report: Value) {
        let app = self.device.json("/v1/device").await;
        assert_eq!(app["status"], "Idle");
        let apps = self.device.json("/v2/state/status").await;
        let app = apps["containers"][0]["appId"].as_u64().unwrap();
        let path = format!("/v3/release-check/{app}");
        let request = self.device.request("PUT", &path).json(&report);
        let answer = self.device.send(request).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    /// Waits until the device has reported to the cloud that it has gone back.
    async fn until_rollback_reported(&self, commit: &str) {
        until("the cloud to be told", || async {
            let report = self.cloud.reported_state();
            let apps = report["apps"].as_object().cloned().unwrap_or_default();
            let mut releases = apps.values().map(|app| &app["releases"]);
            let is_aborted = releases.any(|of| of[commit]["update_status"] == "aborted");
            if is_aborted && report["status"] == "Went back from an unhealthy release: see logs" {
                Ok(())
            } else {
                Err(report)
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_plugin_has_a_device_go_back_to_the_last_release_and_says_why() {
    let story = Story::begin(|_| {}, true).await;
    story.report(json!({ "healthy": true })).await;
    story.until_judged().await;
    assert_eq!(story.blockers().await, []);
    let mut events = story.device.read_events().await;
    story
        .release("c2", |service| {
            service["composition"]["command"] = json!(["print-and-wait", "c2"]);
        })
        .await;
    story.until_runs("c2").await;
    story
        .report(json!({ "healthy": false, "reason": "it prints blank pages" }))
        .await;
    let seen = events.until("release-unhealthy", |_| true).await;
    let data = &seen.last().unwrap().data;
    let reason = "the plugin `release-check` finds it unhealthy: it prints blank pages";
    assert_eq!(
        (&data["commit"], &data["backTo"], &data["message"]),
        (&json!("c2"), &json!(COMMIT), &json!(reason))
    );
    story.until_runs(COMMIT).await;
    let expected = format!(
        "release c2 was not healthy, so the last healthy release runs in its place: {reason}"
    );
    assert_eq!(
        story.blockers().await,
        [("release-unhealthy".to_owned(), expected)]
    );
    story.until_rollback_reported("c2").await;
    let line = format!(
        "Release c2 of app 4 is not healthy: {reason}. The device goes back to release {COMMIT}"
    );
    story.cloud.until_logged(&line).await;
}

#[tokio::test]
async fn a_component_that_fails_its_health_check_gives_way_to_the_last_release() {
    let checked = |service: &mut Value, program: [&str; 3]| {
        service["composition"]["command"] = json!(program);
        service["composition"]["healthcheck"] = json!({
            "test": "http://localhost:8080/", "interval": "1s", "timeout": "10s", "retries": 3,
        });
    };
    let time = |cloud: &RecordedCloud| {
        cloud.change(|device| {
            device["config"] = json!({ "PLATFORM_SUPERVISOR_UPDATE_HEALTH_TIME": "20000" });
        });
    };
    let story = Story::begin(time, false).await;
    story.until_judged().await;
    story
        .release("c2", |service| checked(service, ["serve", "8080", "hello"]))
        .await;
    story.until_runs("c2").await;
    story.until_judged().await;
    // It listens on another port than its health check tests.
    story
        .release("c3", |service| checked(service, ["serve", "8081", "hello"]))
        .await;
    story.until_rollback_reported("c3").await;
    story.until_runs("c2").await;
    let blockers = story.blockers().await;
    let message = &blockers[0].1;
    assert!(
        message.ends_with("the service `main` fails its health check"),
        "{message}"
    );
}
