//! Versions that served before: used in place of a file that cannot be loaded, also after a restart, or restored by the
//! device's owner.

use std::fs;

use device_types::{PluginReport, PluginState};
use http::{Method, StatusCode};
use plugins::RouteLookup;

use crate::fixture::{ALL, Fixture, grant_all, manifest, plugin, setup};

/// Returns one of many versions of the plugin `a`.
fn version(number: usize) -> Vec<u8> {
    plugin(&manifest("a", ALL).replace("1.0.0\"\ninterface", &format!("1.0.{number}\"\ninterface")))
}

/// Returns a policy that accepts these versions as the plugin `a`.
fn policy(versions: &[usize]) -> String {
    let digests: Vec<_> = versions
        .iter()
        .map(|number| format!("\"{}\"", compiled_code::digest(&version(*number))))
        .collect();
    format!(
        "{}sha256 = [{}]\nroutes = [\"/v3/a/*\"]\n",
        grant_all(&["a"]),
        digests.join(", ")
    )
}

/// Starts a device with the first version, which is kept.
async fn device(versions: &[usize]) -> Fixture {
    let device = setup()
        .strange_file("a.wasm", &version(1))
        .policy(&policy(versions))
        .start()
        .await;
    device.until_kept(&version(1)).await;
    device
}

/// Replaces the plugin's file in one step, pinned or not.
fn put(device: &Fixture, content: &[u8]) {
    fs::write(device.path("plugins/new"), content).unwrap();
    fs::rename(device.path("plugins/new"), device.path("plugins/a.wasm")).unwrap();
}

async fn until_serves(device: &Fixture, number: usize) -> PluginReport {
    let version = format!("1.0.{number}");
    let is = |plugin: &PluginReport| {
        plugin.state == PluginState::Running && plugin.version.as_ref() == Some(&version)
    };
    device
        .until(&version, |plugins| plugins.report().iter().any(is))
        .await;
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    device.report("a")
}

/// The folder may be removed then, as the tool of authors does.
#[tokio::test]
async fn nothing_is_written_any_more_once_the_plugins_have_stopped() {
    let device = setup()
        .strange_file("a.wasm", &version(1))
        .policy(&policy(&[1]))
        .start()
        .await;
    device.plugins.shutdown().await;
    assert!(device.is_kept(&version(1)));
}

#[tokio::test]
async fn the_last_good_version_serves_after_a_restart_in_the_place_of_a_file_that_does_not_load() {
    let mut device = device(&[1, 2]).await;
    for broken in [
        b"no component".to_vec(),
        version(1)[..1000].to_vec(),
        // The policy pins other versions.
        version(3),
    ] {
        put(&device, &broken);
        device
            .until("it is refused", |plugins| {
                plugins.report()[0].refused.is_some()
            })
            .await;
        device = device.restart().await;
        let report = until_serves(&device, 1).await;
        assert!(report.refused.is_some(), "{report:?}");
        assert_eq!(report.digest, compiled_code::digest(&version(1)));
        let problems = device.plugins.problems();
        assert!(
            problems[0].contains("its previous version stays in use"),
            "{problems:?}"
        );
        put(&device, &version(2));
        let report = until_serves(&device, 2).await;
        assert_eq!(report.refused, None);
        put(&device, &version(1));
        until_serves(&device, 1).await;
        device.until_kept(&version(1)).await;
    }
}

#[tokio::test]
async fn a_kept_version_serves_only_while_the_policy_grants_it_and_its_file_exists() {
    let device = device(&[1]).await;
    let nobody_answers = |device: &Fixture| {
        matches!(
            device.plugins.find(&Method::GET, "/v3/a/hello"),
            RouteLookup::None
        )
    };
    put(&device, b"no component");
    let device = device.restart().await;
    until_serves(&device, 1).await;
    fs::write(device.path("policy.toml"), policy(&[2])).unwrap();
    device
        .until("the policy takes it away", |_| nobody_answers(&device))
        .await;
    let device = device.restart().await;
    assert!(nobody_answers(&device), "nor after a restart");
    fs::write(device.path("policy.toml"), policy(&[1])).unwrap();
    until_serves(&device, 1).await;
    fs::remove_file(device.path("plugins/a.wasm")).unwrap();
    device
        .until("it is gone", |_| nobody_answers(&device))
        .await;
    let index = device.path("state/plugin-versions/index.json");
    let is_forgotten = || fs::read_to_string(&index).is_ok_and(|index| !index.contains("a.wasm"));
    device
        .until("its versions are forgotten", |_| is_forgotten())
        .await;
    put(&device, b"no component");
    let device = device.restart().await;
    assert!(
        nobody_answers(&device),
        "what was removed does not come back"
    );
}

#[tokio::test]
async fn a_file_that_is_removed_and_written_again_is_the_same_plugins() {
    let device = device(&[1, 2]).await;
    let file = device.path("plugins/a.wasm");
    for content in [b"no component".to_vec(), version(3)] {
        fs::remove_file(&file).unwrap();
        fs::write(&file, content).unwrap();
        device
            .until("it is refused", |plugins| {
                plugins.report()[0].refused.is_some()
            })
            .await;
        let report = until_serves(&device, 1).await;
        assert!(report.refused.is_some(), "{report:?}");
    }
    fs::remove_file(&file).unwrap();
    fs::write(&file, version(2)).unwrap();
    until_serves(&device, 2).await;
    device.until_kept(&version(2)).await;
    // The previous version is kept as well.
    let index = fs::read_to_string(device.path("state/plugin-versions/index.json")).unwrap();
    for number in [1, 2] {
        let digest = compiled_code::digest(&version(number));
        assert!(index.contains(&digest), "{number}: {index}");
    }
}

#[tokio::test]
async fn a_kept_version_gives_way_to_another_file_with_its_name() {
    let device = device(&[1, 2]).await;
    put(&device, b"no component");
    fs::write(device.path("plugins/b.wasm"), version(2)).unwrap();
    let device = device.restart().await;
    until_serves(&device, 2).await;
}

#[tokio::test]
async fn the_owner_puts_the_version_before_back_and_the_one_of_today_again() {
    let device = device(&[1, 2]).await;
    let error = device.rollback("a").unwrap_err().to_string();
    assert!(error.contains("1.0.1 is the first version"), "{error}");
    put(&device, &version(2));
    until_serves(&device, 2).await;
    device.until_kept(&version(2)).await;
    for (to, from) in [(1, 2), (2, 1)] {
        let done = device.rollback("a").unwrap();
        assert_eq!(done.file, device.path("plugins/a.wasm"));
        assert_eq!(done.to.patch, to as u64);
        assert_eq!(done.from.map(|from| from.patch), Some(from));
        until_serves(&device, to).await;
        device.until_kept(&version(to)).await;
    }
    // A file that cannot be loaded goes back to the version that serves in its place.
    put(&device, b"no component");
    let done = device.rollback("a").unwrap();
    assert_eq!((done.to.patch, done.from), (2, None));
    until_serves(&device, 2).await;
    // The policy decides what may be loaded.
    fs::write(device.path("policy.toml"), policy(&[2])).unwrap();
    let error = device.rollback("a").unwrap_err().to_string();
    assert!(
        error.starts_with("the file of the plugin `a` is unchanged: ") && error.contains("add \""),
        "{error}"
    );
    assert_eq!(fs::read(device.path("plugins/a.wasm")).unwrap(), version(2));
    let error = device.rollback("b").unwrap_err().to_string();
    assert_eq!(error, "the device has no plugin `b`; it has `a`");
    // A plugin that was never in use has no version to go back to.
    fs::write(device.path("plugins/b.wasm"), plugin(&manifest("b", ALL))).unwrap();
    let error = device.rollback("b").unwrap_err().to_string();
    assert!(
        error.contains("no earlier version of it is kept"),
        "{error}"
    );
    fs::remove_dir_all(device.path("state/plugin-versions")).unwrap();
    let error = device.rollback("a").unwrap_err().to_string();
    assert!(
        error.starts_with("no version of any plugin is kept in the state folder")
            && error.contains("--config"),
        "{error}"
    );
}
