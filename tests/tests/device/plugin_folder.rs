//! A plugin folder with far more in it than plugins.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tests::{Supervisor, distribution, until};

/// How many files are examined (docs/plugins-on-a-device.md).
const MOST_FILES: usize = 512;
/// Ten times that.
const FILES: usize = 5_000;

fn install(name: &str, folder: &Path) {
    let beside = folder.join(".unfinished");
    fs::copy(distribution().join("plugins").join(name), &beside).unwrap();
    fs::rename(&beside, folder.join(name)).unwrap();
}

async fn plugins(device: &Supervisor) -> Vec<Value> {
    let report = device.json("/v3/plugins").await;
    report["plugins"].as_array().unwrap().clone()
}

async fn until_running(device: &Supervisor, plugin: &str) {
    until("the plugin to serve", || async {
        let plugins = plugins(device).await;
        let mut states = plugins.iter().filter(|one| one["name"] == plugin);
        if states.any(|one| one["state"] == "running") {
            Ok(())
        } else {
            Err(plugins.len())
        }
    })
    .await;
}

#[tokio::test]
async fn files_that_are_no_plugins_hold_up_no_plugin_and_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut device = Supervisor::on_wasm()
        .argument("--plugin-dir")
        .argument(folder.path().display().to_string())
        .start()
        .await;
    // Their names come before those of plugins. They are written in another thread, which can take longer than the
    // device keeps an idle connection: so this one notices that the connection ends.
    let plugin_folder = folder.path().to_owned();
    let writing = tokio::task::spawn_blocking(move || {
        for number in 0..FILES {
            let name = format!("a{number:04}.wasm");
            fs::write(plugin_folder.join(name), b"no component at all").unwrap();
        }
    });
    writing.await.unwrap();
    until("the files to be listed", || async {
        match plugins(&device).await.len() {
            MOST_FILES => Ok(()),
            count => Err(count),
        }
    })
    .await;
    install("device_info.wasm", folder.path());
    until_running(&device, "device-info").await;
    let shown = plugins(&device).await;
    assert_eq!(shown.len(), MOST_FILES);
    let refused = shown.iter().filter(|one| one["state"] == "refused");
    assert_eq!(refused.count(), MOST_FILES - 1);
    let log = device.log();
    assert!(log.contains("are ignored: at most 512 are read"), "{log}");

    // A start reads all of them at once.
    device.kill().await;
    device.start_again().await;
    until_running(&device, "device-info").await;
}
