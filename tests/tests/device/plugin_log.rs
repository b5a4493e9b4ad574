//! `supervisor plugins log NAME` and its endpoint: the last lines of a plugin, for users who cannot read the journal.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{Supervisor, distribution, guest, until};

/// The line that the plugin writes when it is called.
const LINE: &str = "somebody is looking for `local`";
const POLICY: &str = "[plugins.find-me]\ngrants = [\"device\", \"identify\"]\nroutes = [\"/v3/find-me\"]\n\
                      limits = { wall_ms = 20000 }\n";

/// A developer's device with a plugin that writes a line when it is called, and the folder with the plugin.
async fn device() -> (Supervisor, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir(folder.path().join("plugins")).unwrap();
    fs::copy(guest("find_me"), path("plugins/find_me.wasm")).unwrap();
    fs::write(path("policy.toml"), POLICY).unwrap();
    let device = Supervisor::on_wasm()
        .argument("--plugin-dir")
        .argument(path("plugins"))
        .argument("--policy")
        .argument(path("policy.toml"))
        .argument("--allow-unpinned")
        .start()
        .await;
    (device, folder)
}

async fn messages(device: &Supervisor, query: &str) -> Vec<Value> {
    let log = device
        .json(&format!("/v3/plugins/find-me/log{query}"))
        .await;
    let lines = log["lines"].as_array().unwrap();
    lines.iter().map(|line| line["message"].clone()).collect()
}

#[tokio::test]
async fn the_log_of_a_plugin_can_be_read_on_the_device() {
    let (mut device, folder) = device().await;
    for words in [
        &["plugins", "log", "find-me"][..],
        &["plugins", "log", "find-me", "--json"],
    ] {
        let shown = device.subcommand(words);
        assert!(shown.status.success(), "{shown:?}");
        assert_eq!(shown.stdout, "");
        assert_eq!(
            shown.stderr,
            "the plugin `find-me` has written no lines since the supervisor started\n"
        );
    }
    // The device cannot identify itself here, which does not matter for this test.
    device.post("/v3/find-me", &json!({})).await;
    assert_eq!(messages(&device, "").await, [LINE]);
    assert_eq!(messages(&device, "?after=1").await, [] as [&str; 0]);

    let shown = device.subcommand(&["plugins", "log", "find-me"]);
    assert!(shown.status.success(), "{shown:?}");
    assert!(
        shown.stdout.ends_with(&format!(" INFO  {LINE}\n")),
        "{}",
        shown.stdout
    );
    let shown = device.subcommand(&["plugins", "log", "find-me", "--json"]);
    let line: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(line["message"], LINE);

    for (name, expected) in [
        (
            "nobody",
            "the device has no plugin `nobody`; it has `find-me`",
        ),
        ("../../v1/device", "is not the name of a plugin"),
    ] {
        let refused = device.subcommand(&["plugins", "log", name]);
        assert!(!refused.status.success());
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }

    // A removed plugin has no log.
    fs::remove_file(folder.path().join("plugins/find_me.wasm")).unwrap();
    until("the plugin to be gone", || async {
        match device.get("/v3/plugins/find-me/log").await.status {
            404 => Ok(()),
            status => Err(status),
        }
    })
    .await;
    device.terminate().await;
    let refused = device.subcommand(&["plugins", "log", "find-me"]);
    assert!(
        refused.stderr.contains("no supervisor is running"),
        "{}",
        refused.stderr
    );
}

#[tokio::test]
async fn a_follower_sees_lines_as_they_come() {
    let (device, _folder) = device().await;
    device.post("/v3/find-me", &json!({})).await;
    let mut follower = Command::new(distribution().join("bin/supervisor"))
        .args(["plugins", "log", "find-me", "--follow", "--state-dir"])
        .arg(device.state_dir())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = move || lines.next().unwrap().unwrap();
    let (first, next) = tokio::task::spawn_blocking(move || (next(), next))
        .await
        .unwrap();
    assert!(first.ends_with(LINE), "{first}");
    device.post("/v3/find-me", &json!({})).await;
    let second = tokio::task::spawn_blocking(next).await.unwrap();
    assert!(second.ends_with(LINE), "{second}");
    follower.kill().unwrap();
    follower.wait().unwrap();
}
