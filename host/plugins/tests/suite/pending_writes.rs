//! Files that are read while they are being written.

use std::fs::{self, File};
use std::io::Write as _;

use device_types::{PluginReport, PluginState};
use http::StatusCode;
use plugins::Plugins;

use crate::fixture::{ALL, Fixture, grant_all, manifest, plugin, setup};

/// Returns one of many versions of the plugin `a`.
fn version(number: usize) -> Vec<u8> {
    plugin(&manifest("a", ALL).replace("1.0.0\"\ninterface", &format!("1.0.{number}\"\ninterface")))
}

/// Returns a check that the plugin or file of this name is in this state.
fn is_in(state: PluginState, name: &str) -> impl Fn(&Plugins) -> bool {
    move |plugins| {
        let is = |plugin: &PluginReport| plugin.name == name && plugin.state == state;
        plugins.report().iter().any(is)
    }
}

/// Waits until the folders have been read twice: once for a changed policy, which grants capabilities only to the
/// plugins `granted`, and once for a truncated file, which was read after everything that already exists.
async fn until_all_is_judged(
    device: &Fixture,
    granted: &[&str],
    other: PluginState,
    cut_off: &str,
) {
    fs::write(device.path("policy.toml"), grant_all(granted)).unwrap();
    device
        .until("the policy is in force", is_in(other, "other"))
        .await;
    let file = device.path("plugins").join(format!("{cut_off}.wasm"));
    fs::write(file, &version(0)[..1_000]).unwrap();
    device
        .until(
            "what is cut off is refused as soon as it is closed",
            is_in(PluginState::Refused, cut_off),
        )
        .await;
}

#[tokio::test]
async fn a_file_that_is_being_written_is_judged_only_when_it_is_closed() {
    let device = setup().guest("other", "").start().await;
    for number in [1, 2] {
        device.pin(&version(number));
    }
    let content = version(1);
    let (start, rest) = content.split_at(content.len() / 2);
    let mut file = File::create(device.path("plugins/a.wasm")).unwrap();
    file.write_all(start).unwrap();
    until_all_is_judged(&device, &["a"], PluginState::Refused, "cut-off").await;
    let report = device.report("a");
    assert_eq!((report.state, report.refused), (PluginState::Loading, None));
    file.write_all(rest).unwrap();
    drop(file);
    device
        .until("it serves", is_in(PluginState::Running, "a"))
        .await;

    // The next version, written over the one in use, and over one that was refused.
    let content = version(2);
    let (start, rest) = content.split_at(content.len() / 2);
    let mut file = File::create(device.path("plugins/a.wasm")).unwrap();
    let mut again = File::create(device.path("plugins/cut-off.wasm")).unwrap();
    for file in [&mut file, &mut again] {
        file.write_all(start).unwrap();
    }
    let granted = ["a", "other"];
    until_all_is_judged(&device, &granted, PluginState::Running, "cut-off-as-well").await;
    let report = device.report("a");
    assert_eq!((report.state, report.refused), (PluginState::Running, None));
    assert_eq!(report.version.as_deref(), Some("1.0.1"));
    let report = device.report("cut-off");
    assert_eq!((report.state, report.refused), (PluginState::Loading, None));
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    file.write_all(rest).unwrap();
    drop(file);
    device
        .until("the next version serves", |plugins| {
            let report = plugins.report();
            let a = report.iter().find(|plugin| plugin.name == "a");
            a.is_some_and(|a| a.version.as_deref() == Some("1.0.2"))
        })
        .await;
}

#[tokio::test]
async fn a_file_that_nobody_closes_is_judged_when_it_no_longer_changes() {
    let device = setup().policy(&grant_all(&["a"])).start().await;
    let content = version(1);
    device.pin(&content);
    let (start, rest) = content.split_at(content.len() / 2);
    let mut file = File::create(device.path("plugins/a.wasm")).unwrap();
    file.write_all(start).unwrap();
    device
        .until("it is refused", is_in(PluginState::Refused, "a"))
        .await;
    let refused = device.report("a").refused.unwrap();
    assert!(refused.contains("it is cut off or damaged"), "{refused}");
    file.write_all(rest).unwrap();
    drop(file);
    device
        .until("it serves", is_in(PluginState::Running, "a"))
        .await;
}
