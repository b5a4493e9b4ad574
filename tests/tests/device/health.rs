//! What makes a device unhealthy, and that this does not cause a restart.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tests::{Builder, DEADLINE, Supervisor, distribution, subcommand, until};

/// Returns the answer of `/v1/healthy` once it has this status.
async fn until_health(device: &Supervisor, status: u16) {
    until("the device's health", || async {
        let answer = device.get("/v1/healthy").await;
        if answer.status == status {
            Ok(answer)
        } else {
            Err((answer, device.log()))
        }
    })
    .await;
}

/// Returns `state` of a plugin in `GET /v3/plugins`; null if it is not listed.
async fn state_of(device: &Supervisor, plugin: &str) -> Value {
    let report = device.json("/v3/plugins").await;
    let mut plugins = report["plugins"].as_array().unwrap().iter();
    let found = plugins.find(|one| one["name"] == plugin);
    found.map_or(Value::Null, |one| one["state"].clone())
}

fn write_policy(path: &Path, text: &str) {
    // In one step, as an editor does.
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, path).unwrap();
}

const POLICY: &str = "[plugins.device-info]\ngrants = [\"device\"]\n";
const WRONG: &str = "[plugins.device-info]\ngrants = [\"devise\"]\n";

fn with_policy(path: &Path) -> Builder {
    Supervisor::on_wasm()
        .argument("--policy")
        .argument(path.display().to_string())
}

#[tokio::test]
async fn without_any_policy_in_force_a_device_is_not_healthy_and_nothing_restarts_it() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    write_policy(&policy, WRONG);
    let notify = folder.path().join("notify");
    let socket = UnixDatagram::bind(&notify).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let period = Duration::from_millis(200).as_micros();
    let device = with_policy(&policy)
        .environment("NOTIFY_SOCKET", notify.to_str().unwrap())
        .environment("WATCHDOG_USEC", period.to_string())
        .start()
        .await;
    until_health(&device, 500).await;
    assert_eq!(device.get("/v1/healthy").await.text, "Unhealthy");
    let log = device.log();
    assert!(log.contains("the device is not healthy"), "{log}");
    assert!(log.contains("no policy is in force"), "{log}");
    let report = device.json("/v3/plugins").await;
    let error = report["policyError"].as_str().unwrap();
    for part in [policy.to_str().unwrap(), "devise", "no policy is in force"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let plugins = report["plugins"].as_array().unwrap().iter();
    let refused: Vec<_> = plugins.filter_map(|one| one["refused"].as_str()).collect();
    assert!(refused.len() > 1, "{report}");
    for refused in refused {
        assert_eq!(refused, "no policy is in force: it is invalid, see above");
    }
    // systemd watches something else: a line in a file does not restart the device again and again.
    for _ in 0..3 {
        let mut word = [0; 64];
        loop {
            let length = socket.recv(&mut word).expect("the watchdog was not told");
            if word[..length].starts_with(b"WATCHDOG=1") {
                break;
            }
        }
    }

    write_policy(&policy, POLICY);
    until_health(&device, 200).await;
    until("device-info to serve", || async {
        match state_of(&device, "device-info").await {
            state if state == "running" => Ok(()),
            state => Err(state),
        }
    })
    .await;
    assert_eq!(device.json("/v3/plugins").await["policyError"], Value::Null);
}

/// Without a running supervisor, the commands read the policy and the plugins themselves.
#[test]
fn an_invalid_policy_is_named_once_and_is_the_reason_why_no_plugin_loads() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    write_policy(&policy, WRONG);
    let policy = policy.display().to_string();
    for command in ["list", "check"] {
        let words = ["plugins", command, "--policy", &policy];
        let shown = subcommand(&words, folder.path());
        let (error, plugins) = shown.stdout.split_once("\n\n").unwrap();
        assert!(error.contains("devise"), "{error}");
        let reason = "\n  no policy is in force: it is invalid, see above\n";
        let refused = plugins.matches(" refused ").count();
        assert!(refused > 1, "{plugins}");
        assert_eq!(plugins.matches(reason).count(), refused, "{plugins}");
        assert!(!plugins.contains("sha256"), "{plugins}");
    }
}

#[test]
fn a_check_of_plugins_fails_if_one_of_them_is_refused_or_the_policy_is_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    let file = policy.display().to_string();
    // The layout's own policy grants its plugins what they ask for.
    let whole = subcommand(&["plugins", "check"], folder.path());
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    for (text, expected) in [
        (POLICY, " plugins are refused"),
        (WRONG, "the policy is invalid"),
    ] {
        write_policy(&policy, text);
        let words = ["plugins", "check", "--policy", &file];
        let checked = subcommand(&words, folder.path());
        assert_eq!(checked.status.code(), Some(1), "{checked:?}");
        assert!(checked.stderr.contains(expected), "{checked:?}");
        let words = ["plugins", "check", "--json", "--policy", &file];
        let as_json = subcommand(&words, folder.path());
        assert_eq!(as_json.status.code(), Some(1), "{as_json:?}");
        assert_eq!(as_json.stderr, checked.stderr);
        let report: Value = serde_json::from_str(&as_json.stdout).unwrap();
        assert_eq!(report["running"], false, "{report}");
        let mut plugins = report["plugins"].as_array().unwrap().iter();
        assert!(
            plugins.any(|plugin| plugin["refused"].is_string()),
            "{report}"
        );
    }
}

#[tokio::test]
async fn a_policy_that_is_spoilt_later_leaves_the_one_before_in_force_and_the_device_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    write_policy(&policy, POLICY);
    let device = with_policy(&policy).start().await;
    until_health(&device, 200).await;
    write_policy(&policy, WRONG);
    until("the policy's error to show", || async {
        let report = device.json("/v3/plugins").await;
        match report["policyError"].as_str() {
            Some(error) if error.contains("the previous policy stays in force") => Ok(()),
            _ => Err(report["policyError"].clone()),
        }
    })
    .await;
    assert_eq!(state_of(&device, "device-info").await, "running");
    // A restart, with which some react to an unhealthy device, would remove its plugins.
    assert_eq!(device.get("/v1/healthy").await.status, 200);
}

#[tokio::test]
async fn a_device_one_of_whose_own_plugins_is_damaged_is_not_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("device_info.wasm");
    let whole = fs::read(distribution().join("plugins/device_info.wasm")).unwrap();
    let replace = |content: &[u8]| {
        let beside = folder.path().join(".device_info");
        fs::write(&beside, content).unwrap();
        fs::rename(&beside, &plugin).unwrap();
    };
    replace(&whole);
    let mut device = Supervisor::on_wasm()
        .argument("--plugin-dir")
        .argument(folder.path().display().to_string())
        .start()
        .await;
    until("the plugin to serve", || async {
        match state_of(&device, "device-info").await {
            state if state == "running" => Ok(()),
            state => Err(state),
        }
    })
    .await;
    until_health(&device, 200).await;
    // The previous version stays in use, so nothing is wrong until the next start.
    replace(b"half a file");
    until("the damage to show", || async {
        let report = device.json("/v3/plugins").await;
        if report.to_string().contains("it is not WebAssembly") {
            Ok(())
        } else {
            Err(report)
        }
    })
    .await;
    assert_eq!(state_of(&device, "device-info").await, "running");
    assert_eq!(device.get("/v1/healthy").await.status, 200);

    device.kill().await;
    device.start_again().await;
    until_health(&device, 500).await;
    let log = device.log();
    assert!(
        log.contains("the stock plugin `device-info` does not load"),
        "{log}"
    );
    replace(&whole);
    until_health(&device, 200).await;
}
