//! Plugins and policies that somebody else could have written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use device_types::PluginState;
use http::{Method, StatusCode};
use plugins::{Plugins, RouteLookup};

use crate::fixture::{ALL, manifest, plugin, setup};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_plugin_that_others_can_write_is_not_loaded_until_they_cannot() {
    for (below, loose, tight) in [("plugins", 0o777, 0o755), ("plugins/a.wasm", 0o666, 0o644)] {
        let loosened = setup().guest("a", "");
        let path = loosened.root.path().join(below);
        set_mode(&path, loose);
        let device = loosened.start().await;
        let report = device.report("a");
        let refused = report.refused.unwrap();
        assert_eq!(report.state, PluginState::Refused, "{below}");
        assert!(
            refused.contains(&format!("`chmod go-w {}`", path.display())),
            "{refused}"
        );
        let found = device.plugins.find(&Method::GET, "/v3/a/hello");
        assert!(matches!(found, RouteLookup::None), "{below}");

        set_mode(&path, tight);
        device.until("it serves", serves).await;
        assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    }
}

/// Returns whether the plugin `a` runs. While it is loaded, it has no problem either.
fn serves(plugins: &Plugins) -> bool {
    let report = plugins.report();
    let mut of_a = report.iter().filter(|plugin| plugin.name == "a");
    plugins.problems().is_empty() && of_a.any(|plugin| plugin.state == PluginState::Running)
}

/// Two files of one name are both refused, so a file that others can write would end any plugin that it names.
#[tokio::test]
async fn a_file_that_others_can_write_takes_no_name_and_no_reader() {
    let device = setup()
        .guest("a", "")
        .file("b.wasm", &plugin(&manifest("a", ALL)));
    set_mode(&device.root.path().join("plugins/b.wasm"), 0o666);
    let device = device.start().await;
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    assert_eq!(device.report("b").state, PluginState::Refused);
}

#[tokio::test]
async fn a_policy_that_others_can_write_grants_nothing() {
    for policy in ["policy.toml", "stock-plugins.toml"] {
        let loosened = setup().guest("a", "");
        let path = loosened.root.path().join(policy);
        set_mode(&path, 0o646);
        let device = loosened.start().await;
        assert_eq!(device.report("a").state, PluginState::Refused);
        let problems = device.plugins.problems().join("\n");
        let cure = format!("`chmod go-w {}`", path.display());
        assert!(problems.contains(&cure), "{problems}");
        set_mode(&path, 0o600);
        device.until("it serves", serves).await;

        // What was granted before stays granted, since it was not written by anybody else.
        set_mode(&path, 0o606);
        device
            .until("the owner to be informed", |plugins| {
                plugins.problems().join("\n").contains(&cure)
            })
            .await;
        assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    }
}

/// In developer mode any file is accepted, so its owner makes no difference.
#[tokio::test]
async fn developers_have_files_of_anybody() {
    let loosened = setup().guest("a", "").allow_unpinned();
    set_mode(&loosened.root.path().join("plugins"), 0o777);
    set_mode(&loosened.root.path().join("policy.toml"), 0o666);
    let device = loosened.start().await;
    assert_eq!(device.report("a").state, PluginState::Running);
}
