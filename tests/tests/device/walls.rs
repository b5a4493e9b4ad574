//! The walls behind the sandbox: where missing ones are reported, and what the policy does about them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::{Supervisor, distribution, guest, never_compiled, service, target, until};

fn hello(component: &Path) -> Value {
    let ticks = json!({"command": ["tick"]});
    target(1, &[service("web", component, &ticks)])
}

async fn process(device: &Supervisor, name: &str) -> Option<Value> {
    let report = device.json("/v3/plugins").await;
    let processes = report["confinement"]["processes"].as_array().unwrap();
    let mut found = processes.iter();
    let found = found.find(|process| process["process"].as_str().unwrap().starts_with(name));
    found.cloned()
}

fn missing(process: &Value) -> Vec<&str> {
    let missing = process["missing"].as_array().unwrap().iter();
    missing.map(|wall| wall["wall"].as_str().unwrap()).collect()
}

/// Creates a program that runs the supervisor without users other than root, as in a container without rights.
fn without_users(folder: &Path) -> PathBuf {
    let program = folder.join("supervisor");
    let text = format!(
        "#!/bin/sh\nexec unshare --user --map-root-user {} \"$@\"\n",
        distribution().join("bin/supervisor").display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// Puts the component into a file of this name in `folder`, with code that was never compiled before.
fn stamped(component: &Path, folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, never_compiled(&fs::read(component).unwrap())).unwrap();
    file
}

#[tokio::test]
async fn a_missing_wall_is_reported_and_is_an_error_if_the_policy_requires_it() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    let shipped = fs::read_to_string(distribution().join("policy.toml")).unwrap();
    let require = |required: bool| {
        let text = format!("require_confinement = {required}\n{shipped}");
        fs::write(folder.path().join("new"), text).unwrap();
        fs::rename(folder.path().join("new"), &policy).unwrap();
    };
    require(false);
    let device = Supervisor::on_wasm()
        .program(without_users(folder.path()))
        .argument("--policy")
        .argument(policy.display().to_string())
        .start()
        .await;
    let component = stamped(&guest("guest"), folder.path(), "first.wasm");
    device.set_target(&hello(&component)).await;
    device.until_applied().await;
    for name in ["compiler", "plugins", "service"] {
        let process = process(&device, name).await.unwrap();
        assert!(missing(&process).contains(&"user"), "{process}");
        for wall in ["capabilities", "no-new-privileges", "bounds"] {
            let in_force = process["inForce"].to_string();
            assert!(in_force.contains(wall), "{wall}: {process}");
        }
    }
    let log = device.log();
    for message in [
        "the compiler runs without restrictions that this system lacks: user (",
        "the container runs without restrictions that this system lacks: ",
    ] {
        assert!(log.contains(message), "{message}: {log}");
    }
    assert!(!is_required(&device).await);

    // Running services continue; the requirement applies to everything started or compiled next.
    require(true);
    assert!(is_required(&device).await);
    let another = stamped(&guest("guest"), folder.path(), "second.wasm");
    device.set_target(&hello(&another)).await;
    let refused = "the policy requires restrictions that this system lacks: user (";
    until("it to be refused", || async {
        let log = device.log();
        if log.contains(refused) {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
    require(false);
    device.until_applied().await;
}

#[tokio::test]
async fn the_api_reports_the_walls_that_are_up() {
    let folder = tempfile::tempdir().unwrap();
    let device = Supervisor::on_wasm().start().await;
    let component = stamped(&guest("guest"), folder.path(), "first.wasm");
    device.set_target(&hello(&component)).await;
    device.until_applied().await;
    for name in ["compiler", "plugins", "service"] {
        let process = process(&device, name).await.unwrap();
        for wall in [
            "user",
            "capabilities",
            "no-new-privileges",
            "bounds",
            "system-calls",
        ] {
            let in_force = process["inForce"].to_string();
            assert!(in_force.contains(wall), "{wall}: {process}");
        }
    }
}

async fn is_required(device: &Supervisor) -> bool {
    let report = device.json("/v3/plugins").await;
    report["confinement"]["required"].as_bool().unwrap()
}
