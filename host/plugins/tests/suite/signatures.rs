//! Files that are pinned by their signer.

use std::fs;

use device_types::PluginState;
use http::{Method, StatusCode};
use minisign::KeyPair;
use plugins::RouteLookup;

use crate::fixture::{ALL, Fixture, Setup, grant_all, manifest, plugin, setup, with_section};

/// Returns a version of the plugin `a`.
fn version(version: &str) -> Vec<u8> {
    plugin(&manifest("a", ALL).replace("1.0.0\"\ninterface", &format!("{version}\"\ninterface")))
}

fn pair() -> KeyPair {
    KeyPair::generate_unencrypted_keypair().unwrap()
}

fn sign(pair: &KeyPair, content: &[u8]) -> String {
    let signature = minisign::sign(None, &pair.sk, content, None, None).unwrap();
    signature.to_string()
}

/// Returns the policy that grants `a` to files signed with one of these keys: their names, and whether they are
/// revoked.
fn policy(keys: &[(&str, &KeyPair, bool)], more: &str) -> String {
    let names: Vec<_> = keys
        .iter()
        .map(|(name, _, _)| format!("\"{name}\""))
        .collect();
    let mut text = grant_all(&["a"]);
    text.push_str(&format!(
        "keys = [{}]\nroutes = [\"/v3/a/*\"]\n{more}\n",
        names.join(", ")
    ));
    for (name, pair, revoked) in keys {
        let public = pair.pk.to_base64();
        text.push_str(&format!(
            "[keys.{name}]\npublic = \"{public}\"\nrevoked = {revoked}\n"
        ));
    }
    text
}

/// Writes `content` to `below` in one step.
fn put(device: &Fixture, below: &str, content: impl AsRef<[u8]>) {
    fs::write(device.path("new"), content).unwrap();
    fs::rename(device.path("new"), device.path(below)).unwrap();
}

async fn until_version(device: &Fixture, version: &str) {
    device
        .until(version, |plugins| {
            let report = &plugins.report()[0];
            report.version.as_deref() == Some(version)
                && report.state == PluginState::Running
                && report.refused.is_none()
        })
        .await;
}

async fn until_refused(device: &Fixture, state: PluginState, reason: &str) {
    device
        .until(reason, |plugins| {
            let report = &plugins.report()[0];
            let refused = report.refused.as_deref().unwrap_or_default();
            report.state == state && refused.contains(reason)
        })
        .await;
}

fn signed(content: &[u8], pair: &KeyPair) -> Setup {
    let signature = sign(pair, content);
    setup()
        .strange_file("a.wasm", content)
        .strange_file("a.wasm.minisig", signature.as_bytes())
}

#[tokio::test]
async fn a_name_is_pinned_to_a_key_which_is_rotated_and_revoked() {
    let (old, new, stranger) = (pair(), pair(), pair());
    let device = signed(&version("1.0.0"), &old)
        .policy(&policy(&[("old", &old, false)], ""))
        .start()
        .await;
    let report = device.report("a");
    assert_eq!(
        (report.state, report.signed_by.as_deref()),
        (PluginState::Running, Some("old"))
    );
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);

    // A new version needs no line in the policy, whichever of its files comes first.
    put(&device, "plugins/a.wasm", version("1.1.0"));
    until_refused(&device, PluginState::Running, "does not match the content").await;
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    put(
        &device,
        "plugins/a.wasm.minisig",
        sign(&old, &version("1.1.0")),
    );
    until_version(&device, "1.1.0").await;
    put(
        &device,
        "plugins/a.wasm.minisig",
        sign(&old, &version("1.2.0")),
    );
    put(&device, "plugins/a.wasm", version("1.2.0"));
    until_version(&device, "1.2.0").await;
    assert_eq!(device.report("a").failures, 0);

    // Another maker's signature does not count.
    put(
        &device,
        "plugins/a.wasm.minisig",
        sign(&stranger, &version("1.3.0")),
    );
    put(&device, "plugins/a.wasm", version("1.3.0"));
    let reason = "was made with a key that the policy does not name";
    until_refused(&device, PluginState::Running, reason).await;

    // The maker switches to another key: with both named, old and new files are accepted.
    let both = [("old", &old, false), ("new", &new, false)];
    put(&device, "policy.toml", policy(&both, ""));
    put(
        &device,
        "plugins/a.wasm.minisig",
        sign(&new, &version("1.3.0")),
    );
    until_version(&device, "1.3.0").await;
    assert_eq!(device.report("a").signed_by.as_deref(), Some("new"));
    put(
        &device,
        "plugins/a.wasm.minisig",
        sign(&old, &version("1.4.0")),
    );
    put(&device, "plugins/a.wasm", version("1.4.0"));
    until_version(&device, "1.4.0").await;

    // A revoked key takes down everything signed with it.
    let revoked = [("old", &old, true), ("new", &new, false)];
    put(&device, "policy.toml", policy(&revoked, ""));
    let reason = "it is signed with `old`, which is revoked";
    until_refused(&device, PluginState::Refused, reason).await;
    let found = device.plugins.find(&Method::GET, "/v3/a/hello");
    assert!(matches!(found, RouteLookup::None));
}

#[tokio::test]
async fn a_signature_may_be_in_the_file_and_a_changed_byte_is_seen() {
    let (maker, content) = (pair(), version("1.0.0"));
    let signature = sign(&maker, &content);
    let file = with_section(&content, "platform:minisig", signature.as_bytes());
    let mut twisted = file.clone();
    // Inside the component, far from the manifest and the signature.
    twisted[1_000] ^= 1;
    let keys = [("maker", &maker, false)];
    let device = setup()
        .strange_file("a.wasm", &file)
        .policy(&policy(&keys, ""))
        .start()
        .await;
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    put(&device, "plugins/a.wasm", &twisted);
    device
        .until("the other is refused", |plugins| {
            plugins.report()[0].refused.is_some()
        })
        .await;
    put(&device, "plugins/a.wasm", &content);
    until_refused(&device, PluginState::Running, "it has no signature").await;
    // The tool moves it there.
    put(&device, "plugins/a.wasm.minisig", &signature);
    until_version(&device, "1.0.0").await;
    plugins::embed_signature(&device.path("plugins/a.wasm")).unwrap();
    assert_eq!(fs::read(device.path("plugins/a.wasm")).unwrap(), file);
    device
        .until("it is loaded as it is", |plugins| {
            let report = &plugins.report()[0];
            report.digest == compiled_code::digest(&file) && report.refused.is_none()
        })
        .await;
    assert_eq!(device.report("a").state, PluginState::Running);
}

#[tokio::test]
async fn a_signature_does_not_take_a_device_back_to_an_older_version_and_a_digest_does() {
    let maker = pair();
    let keys = [("maker", &maker, false)];
    let older = version("1.0.0");
    let device = signed(&version("2.0.0"), &maker)
        .policy(&policy(&keys, ""))
        .start()
        .await;
    until_version(&device, "2.0.0").await;
    put(&device, "plugins/a.wasm.minisig", sign(&maker, &older));
    put(&device, "plugins/a.wasm", &older);
    let reason = "version 1.0.0 is older than 2.0.0, which this device has had";
    until_refused(&device, PluginState::Running, reason).await;
    assert_eq!(device.report("a").version.as_deref(), Some("2.0.0"));

    // Nor after a restart, when no newer version is in use.
    device
        .until("the version is kept", |_| {
            let kept = device.store.plugin_get("a (host)", "newest-version");
            kept.unwrap().as_deref() == Some(b"2.0.0")
        })
        .await;
    let device = device.restart().await;
    until_refused(&device, PluginState::Refused, reason).await;
    let pin = format!("sha256 = [\"{}\"]", compiled_code::digest(&older));
    put(&device, "policy.toml", policy(&keys, &pin));
    until_version(&device, "1.0.0").await;
    assert_eq!(device.report("a").signed_by, None);
}

#[tokio::test]
async fn a_signature_alone_does_not_take_a_plugin_back() {
    let maker = pair();
    let keys = [("maker", &maker, false)];
    let device = signed(&version("1.0.0"), &maker)
        .policy(&policy(&keys, ""))
        .start()
        .await;
    device.until_kept(&version("1.0.0")).await;
    put(
        &device,
        "plugins/a.wasm.minisig",
        sign(&maker, &version("1.1.0")),
    );
    put(&device, "plugins/a.wasm", version("1.1.0"));
    until_version(&device, "1.1.0").await;
    device.until_kept(&version("1.1.0")).await;
    let error = device.rollback("a").unwrap_err().to_string();
    let digest = compiled_code::digest(&version("1.0.0"));
    assert!(
        error.contains("1.0.0 is older") && error.contains(&format!("add \"{digest}\"")),
        "{error}"
    );
    // The error contains the section with the digest, to be put in place of the present one.
    let (_, section) = error.split_once(":\n\n").unwrap();
    let section: toml::Table = section.parse().unwrap();
    let pins = &section["plugins"]["a"];
    assert_eq!(pins["sha256"][0].as_str(), Some(digest.as_str()));
    assert_eq!(pins["keys"][0].as_str(), Some("maker"));
    until_version(&device, "1.1.0").await;
    let pinned = format!("sha256 = [\"{digest}\"]");
    put(&device, "policy.toml", policy(&keys, &pinned));
    let done = device.rollback("a").unwrap();
    assert_eq!(done.to.to_string(), "1.0.0");
    until_version(&device, "1.0.0").await;
    // Its signature was restored with it, and the way forward needs no digest.
    device.until_kept(&version("1.0.0")).await;
    assert_eq!(device.rollback("a").unwrap().to.to_string(), "1.1.0");
    until_version(&device, "1.1.0").await;
    assert_eq!(device.report("a").signed_by.as_deref(), Some("maker"));
}
