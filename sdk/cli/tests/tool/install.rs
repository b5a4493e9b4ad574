//! `install` and `uninstall`: an author's plugin on a real device in developer mode.

use std::fs;

use tempfile::TempDir;
use tests::{Supervisor, guest};

use crate::author::Author;

/// Starts a device with this policy and these flags.
async fn device(policy: &str, flags: &[&str]) -> (Supervisor, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir(folder.path().join("plugins")).unwrap();
    fs::write(path("policy.toml"), policy).unwrap();
    let mut device = Supervisor::on_wasm()
        .argument("--plugin-dir")
        .argument(path("plugins"))
        .argument("--policy")
        .argument(path("policy.toml"));
    for flag in flags {
        device = device.argument(*flag);
    }
    (device.start().await, folder)
}

/// Returns an author with the greeter, and the arguments that name a device and its key.
fn author(device: &Supervisor) -> (Author, String) {
    let author = Author::new();
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    let address = device.base().trim_start_matches("http://").to_owned();
    let words = format!("--device {address} --key {}", device.key());
    (author, words)
}

#[tokio::test]
async fn a_plugin_is_installed_on_a_developers_device_and_removed_again() {
    let policy = "[plugins.greeter]\ngrants = [\"device\"]\nroutes = [\"/v3/greet/*\"]\n";
    let (device, _folder) = device(policy, &["--allow-unpinned"]).await;
    let (author, words) = author(&device);
    let install = format!("install greeter.wasm {words}");
    let installed = author.run(&install).succeeds();
    assert!(
        installed.out.ends_with(": greeter 0.1.0 (new)\n"),
        "{}",
        installed.out
    );
    let greeting = "/v3/greet/Ada?greeting=Hi";
    assert_eq!(device.get(greeting).await.status, 200);
    let again = author.run(&install).succeeds();
    assert!(
        again.out.ends_with(": greeter 0.1.0 -> 0.1.0\n"),
        "{}",
        again.out
    );
    let removed = author.run(&format!("uninstall greeter {words}")).succeeds();
    assert!(
        removed.out.ends_with(": greeter is removed\n"),
        "{}",
        removed.out
    );
    assert_eq!(device.get(greeting).await.status, 404);
    let gone = author.run(&format!("uninstall greeter {words}")).fails();
    assert!(gone.out.contains("no plugin of that name"), "{}", gone.out);
}

#[tokio::test]
async fn a_refused_plugin_is_shown_with_the_lines_for_the_policy() {
    let (device, folder) = device("", &["--allow-unpinned"]).await;
    let (author, words) = author(&device);
    let refused = author.run(&format!("install greeter.wasm {words}")).fails();
    for expected in [
        "greeter 0.1.0 (new), which the device refuses",
        "[plugins.greeter]",
        "grants = [\"device\"]",
    ] {
        assert!(
            refused.out.contains(expected),
            "{expected}: {}",
            refused.out
        );
    }
    // With these lines the plugin runs.
    let (_, lines) = refused
        .out
        .split_once("grant what the plugin asks for:\n\n")
        .unwrap();
    fs::write(folder.path().join("policy.toml"), lines).unwrap();
    tests::until("the plugin to serve", || async {
        match device.get("/v3/greet/Ada?greeting=Hi").await.status {
            200 => Ok(()),
            status => Err(status),
        }
    })
    .await;
    let document = author
        .run(&format!("install greeter.wasm {words} --json"))
        .succeeds()
        .json();
    assert_eq!(document["devices"][0]["state"], "running");
}

#[tokio::test]
async fn a_device_that_installs_nothing_says_why() {
    let (device, folder) = device("", &[]).await;
    let (author, words) = author(&device);
    let address = device.base().trim_start_matches("http://").to_owned();
    author.write("text.wasm", "no component");
    for (words, expected) in [
        (format!("greeter.wasm {words}"), "--allow-unpinned"),
        (
            format!("greeter.wasm --device {address} --key wrong"),
            "the key is not the device's own",
        ),
        (
            "greeter.wasm --device 127.0.0.1:1 --key wrong".to_owned(),
            "it does not answer",
        ),
    ] {
        let refused = author.run(&format!("install {words}")).fails();
        assert!(refused.out.contains(expected), "{words}: {}", refused.out);
    }
    let refused = author.run(&format!("install text.wasm {words}")).fails();
    assert!(refused.err.contains("is not a plugin"), "{}", refused.err);
    let plugins = fs::read_dir(folder.path().join("plugins")).unwrap();
    assert_eq!(plugins.count(), 0);
}
