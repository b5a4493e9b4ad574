//! A fleet whose owner signs its releases on the command line, with the real cloud between the owner and the device.

use std::fs;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use tests::{FleetCloud, Supervisor, guest, repository, until};

use super::with_its_cloud::{BOARD, known, until_runs};

const REFUSED: &str = "Refused a target that is not signed: see logs";

/// The owner's machine: a compose file, and the key, which the cloud does not have.
struct Owner {
    folder: tempfile::TempDir,
}

impl Owner {
    fn new(cloud: &FleetCloud) -> Owner {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(guest("guest"), folder.path().join("guest.wasm")).unwrap();
        let owner = Owner { folder };
        let words = ["signing-key", "make", "fleet.key", "--no-password"];
        let _ = cloud.command_line(owner.path(), &words);
        owner
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The policy of the fleet's devices.
    fn policy(&self) -> String {
        let shipped = fs::read_to_string(repository().join("packaging/policy.toml")).unwrap();
        let public = fs::read_to_string(self.path().join("fleet.key.pub")).unwrap();
        let key = public.lines().nth(1).unwrap();
        let targets = "[targets]\nkeys = [\"fleet\"]\n";
        let policy = format!("{shipped}\n[keys.fleet]\npublic = \"{key}\"\n{targets}");
        let path = self.path().join("policy.toml");
        fs::write(&path, policy).unwrap();
        path.display().to_string()
    }

    fn deploy(&self, cloud: &FleetCloud, version: &str) -> i64 {
        let compose = json!({ "services": { "main": {
            "image": "./guest.wasm", "command": ["wait"], "environment": { "VERSION": version },
            "stop_grace_period": "1s",
        } } });
        fs::write(self.path().join("compose.yml"), compose.to_string()).unwrap();
        let words = ["deploy", "compose.yml", "--fleet", "pump", "--json"];
        let words = [&words[..], &["--release-version", version]].concat();
        let output = cloud.command_line(self.path(), &words);
        let made: Value = serde_json::from_slice(&output.stdout).unwrap();
        made["id"].as_i64().unwrap_or_else(|| panic!("{made}"))
    }

    /// Signs a release, and returns the output of the command.
    fn sign(&self, cloud: &FleetCloud, version: &str, more: &[&str]) -> String {
        let words = ["sign", version, "--fleet", "pump", "--key", "fleet.key"];
        let words = [&words[..], &["--expires", "1d", "--yes"], more].concat();
        let output = cloud.command_line(self.path(), &words);
        String::from_utf8(output.stderr).unwrap()
    }
}

async fn until_refused(cloud: &FleetCloud, device: &Supervisor, reason: &str) {
    until(reason, || async {
        let plan = device.json("/v3/plan").await;
        let row = known(cloud).await;
        let refused = plan["signedTargets"]["refused"].to_string();
        if refused.contains(reason) && row["status"] == REFUSED {
            Ok(())
        } else {
            Err((plan, row, device.log()))
        }
    })
    .await;
}

#[tokio::test]
async fn a_fleet_runs_what_its_owner_signs_on_the_command_line_and_nothing_else() {
    let Ok(registry) = std::env::var("SUPERVISOR_TEST_REGISTRY") else {
        println!("SKIPPED: SUPERVISOR_TEST_REGISTRY is not set");
        return;
    };
    let cloud = FleetCloud::start(&registry).await;
    let fleet = cloud.fleet("pump", BOARD).await;
    let owner = Owner::new(&cloud);
    let first = owner.deploy(&cloud, "1.0.0");
    let shown = owner.sign(&cloud, "1.0.0", &["--compose", "compose.yml"]);
    assert!(shown.contains("@sha256:"), "{shown}");
    let config = cloud.config_json(fleet, BOARD).await;
    let device = Supervisor::on_wasm()
        .argument("--policy")
        .argument(owner.policy())
        .config_json(config)
        .start()
        .await;
    until_runs(&cloud, &device, first).await;
    let container = device.json("/v2/containerId").await;

    // A release that is not signed, and settings that anybody in control of the cloud could change.
    let second = owner.deploy(&cloud, "2.0.0");
    until_refused(&cloud, &device, "is not signed").await;
    assert_eq!(device.json("/v2/containerId").await, container);
    let _ = owner.sign(&cloud, "2.0.0", &["--variable", "main/COLOUR"]);
    until_runs(&cloud, &device, second).await;
    let container = device.json("/v2/containerId").await;
    let set = |name: &str| {
        let variable = json!({ "application": fleet, "name": name, "value": "blue" });
        let path = "/v7/application_environment_variable";
        cloud.request(Method::POST, path).json(&variable)
    };
    let made = cloud.answer(set("LD_PRELOAD")).await;
    until_refused(&cloud, &device, "the variable `LD_PRELOAD`").await;
    assert_eq!(device.json("/v2/containerId").await, container);
    let path = format!("/v7/application_environment_variable({})", made["id"]);
    cloud.answer(cloud.request(Method::DELETE, &path)).await;
    cloud.answer(set("COLOUR")).await;
    until("the service to be recreated", || async {
        let now = device.json("/v2/containerId").await;
        if now["services"]["main"].is_string() && now != container {
            Ok(())
        } else {
            Err((now, device.log()))
        }
    })
    .await;

    // Back to the earlier release: only if the owner signs it again.
    let row = known(&cloud).await;
    let pin = json!({ "is_pinned_on__release": first });
    let path = format!("/v7/device({})", row["id"]);
    let pin = cloud.request(Method::PATCH, &path).json(&pin);
    cloud.answer(pin).await;
    until_refused(&cloud, &device, "the device has already accepted").await;
    let _ = owner.sign(&cloud, "1.0.0", &["--variable", "COLOUR"]);
    until_runs(&cloud, &device, first).await;
}
