//! `PUT` and `DELETE /v3/plugins/:name`: plugins that a developer installs on a device, and other requests to these
//! endpoints.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tests::{Answer, Supervisor, distribution, guest, guest_plugin, never_compiled, until};

/// The grants that the greeter asks for.
const GRANTS: &str = "[plugins.greeter]\ngrants = [\"device\"]\nroutes = [\"/v3/greet/*\"]\n";

/// A device with an empty plugin folder, this policy and these flags; returns it with the folder of both.
async fn device(policy: &str, flags: &[&str]) -> (Supervisor, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir(folder.path().join("plugins")).unwrap();
    fs::create_dir(folder.path().join("more")).unwrap();
    fs::write(path("policy.toml"), policy).unwrap();
    let mut device = Supervisor::on_wasm();
    for argument in [
        "--plugin-dir",
        &path("plugins"),
        "--plugin-dir",
        &path("more"),
        "--policy",
        &path("policy.toml"),
    ] {
        device = device.argument(argument);
    }
    for flag in flags {
        device = device.argument(*flag);
    }
    (device.start().await, folder)
}

async fn developers() -> (Supervisor, TempDir) {
    device(GRANTS, &["--allow-unpinned"]).await
}

async fn put(device: &Supervisor, name: &str, component: Vec<u8>) -> Answer {
    let request = device.request("PUT", &format!("/v3/plugins/{name}"));
    device.send(request.body(component)).await
}

fn greeter() -> Vec<u8> {
    fs::read(guest("greeter")).unwrap()
}

/// Returns a plugin with this name and version that asks for everything.
fn greedy(name: &str, version: &str) -> Vec<u8> {
    let component = fs::read(guest("plugin_guests")).unwrap();
    let keys = format!("name = \"{name}\"\nversion = \"{version}\"\n");
    let routes = "[[routes]]\nmethod = \"GET\"\npath = \"/v3/greet/:what\"\n";
    guest_plugin(&component, &keys, routes)
}

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn message(answer: &Answer) -> String {
    answer.json()["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_plugin_is_installed_updated_refused_and_removed() {
    let (device, folder) = developers().await;
    let plugins = folder.path().join("plugins");
    let answer = put(&device, "greeter", greeter()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!(
        (&answer["version"], &answer["state"]),
        (&json!("0.1.0"), &json!("running"))
    );
    assert_eq!(answer["previous"], Value::Null);
    let greeting = "/v3/greet/Ada?greeting=Hi";
    assert_eq!(device.get(greeting).await.status, 200);
    assert_eq!(names(&plugins), ["greeter.wasm"]);

    // The next version asks for more than the policy grants: the previous one stays in use.
    fs::write(
        plugins.join("greeter.wasm.minisig"),
        "of the version before",
    )
    .unwrap();
    let answer = put(&device, "greeter", greedy("greeter", "0.2.0")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!(
        (&answer["previous"], &answer["version"], &answer["state"]),
        (&json!("0.1.0"), &json!("0.2.0"), &json!("running"))
    );
    let refused = answer["refused"].as_str().unwrap();
    assert!(refused.contains("store"), "{refused}");
    let lines = answer["policyLines"].as_str().unwrap();
    assert!(
        lines.contains("[plugins.greeter]") && lines.contains("\"store\""),
        "{lines}"
    );
    assert_eq!(device.get(greeting).await.status, 200);
    assert_eq!(names(&plugins), ["greeter.wasm"]);

    // A plugin without any grant in the policy.
    let answer = put(&device, "other", greedy("other", "1.0.0")).await.json();
    assert_eq!(answer["state"], "refused", "{answer}");
    assert!(
        answer["policyLines"]
            .as_str()
            .unwrap()
            .contains("[plugins.other]")
    );

    for (name, status) in [("greeter", 200), ("other", 200), ("greeter", 404)] {
        let request = device.request("DELETE", &format!("/v3/plugins/{name}"));
        let answer = device.send(request).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    assert_eq!(device.get(greeting).await.status, 404);
    assert_eq!(names(&plugins), [] as [&str; 0]);
    let uploads = device.state_dir().join("plugin-uploads");
    assert_eq!(names(&uploads), [] as [&str; 0]);
}

/// Returns a section with a module of 1 MiB that nothing uses: only large components take functions over.
fn large_module() -> Vec<u8> {
    let data = "x".repeat(1 << 20);
    let component = wat::parse_str(format!("(component (core module (data {data:?})))")).unwrap();
    component[plugin_manifest::COMPONENT.len()..].to_vec()
}

/// Each component of a device that is not for development is compiled as a whole: one that takes control of the compiler
/// could otherwise determine the code of others.
#[tokio::test]
async fn only_a_device_of_developers_takes_functions_over_from_one_component_to_another() {
    for (flags, is_developers) in [(&["--allow-unpinned"][..], true), (&[], false)] {
        let mut component = never_compiled(&greeter());
        component.extend(large_module());
        let digest = hex::encode(Sha256::digest(&component));
        let policy = format!("{GRANTS}sha256 = [\"{digest}\"]\n");
        let (device, folder) = device(&policy, flags).await;
        // Written elsewhere, since a plugin folder is read while a file is written.
        fs::write(folder.path().join("new"), component).unwrap();
        let file = folder.path().join("plugins/greeter.wasm");
        fs::rename(folder.path().join("new"), file).unwrap();
        until("the plugin to answer", || async {
            let answer = device.get("/v3/greet/Ada?greeting=Hi").await;
            (answer.status == 200).then_some(()).ok_or(answer)
        })
        .await;
        let compiled = names(&device.state_dir().join("compiled"));
        let has_functions = compiled.iter().any(|name| name.starts_with("functions-"));
        assert_eq!(has_functions, is_developers, "{compiled:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_the_plugin_of_the_path_changes_nothing() {
    let (device, folder) = developers().await;
    let plugins = folder.path().join("plugins");
    assert_eq!(put(&device, "greeter", greeter()).await.status, 200);
    fs::copy(guest("ticker"), folder.path().join("more/ticker.wasm")).unwrap();
    // A file with that name which is another plugin, and one that is not a plugin.
    fs::write(plugins.join("text.wasm"), "no component").unwrap();
    until("the files to be seen", || async {
        let report = device.json("/v3/plugins").await;
        match report["plugins"].as_array().unwrap().len() {
            3 => Ok(()),
            _ => Err(report),
        }
    })
    .await;
    let before = fs::read(plugins.join("greeter.wasm")).unwrap();
    for (name, component, status, expected) in [
        ("greeter", b"no component".to_vec(), 400, "is not a plugin"),
        ("greeter", Vec::new(), 400, "is not a plugin"),
        (
            "greeter",
            greeter()[..5000].to_vec(),
            400,
            "is not a plugin",
        ),
        ("hello", greeter(), 400, "the body is the plugin `greeter`"),
        ("..%2f..%2fgreeter", greeter(), 400, "lower-case letters"),
        ("%2fetc%2fgreeter", greeter(), 400, "lower-case letters"),
        ("Greeter", greeter(), 400, "lower-case letters"),
        ("greeter%00", greeter(), 400, "lower-case letters"),
        // Plugins of the layout, whether or not their files are here.
        ("vpn", greeter(), 409, "the device ships with"),
        (
            "ticker",
            fs::read(guest("ticker")).unwrap(),
            409,
            "more/ticker.wasm",
        ),
        ("text", greedy("text", "1.0.0"), 409, "text.wasm"),
    ] {
        let answer = put(&device, name, component).await;
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        assert!(message(&answer).contains(expected), "{name}: {answer:?}");
    }
    for (name, status) in [
        ("vpn", 409),
        ("ticker", 409),
        ("nobody", 404),
        ("..%2fpolicy", 400),
    ] {
        let request = device.request("DELETE", &format!("/v3/plugins/{name}"));
        let answer = device.send(request).await;
        assert_eq!(answer.status, status, "{name}: {answer:?}");
    }
    assert_eq!(names(&plugins), ["greeter.wasm", "text.wasm"]);
    assert_eq!(fs::read(plugins.join("greeter.wasm")).unwrap(), before);
    assert_eq!(names(&folder.path().join("more")), ["ticker.wasm"]);
    assert_eq!(names(folder.path()), ["more", "plugins", "policy.toml"]);
}

#[tokio::test]
async fn a_stock_plugin_stays_what_it_is() {
    // If the layout's own folder is the plugin folder, as it is by default.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("device_info.wasm");
    fs::copy(distribution().join("plugins/device_info.wasm"), &file).unwrap();
    let device = Supervisor::on_wasm()
        .argument("--plugin-dir")
        .argument(folder.path().display().to_string())
        .argument("--allow-unpinned")
        .start()
        .await;
    let before = fs::read(&file).unwrap();
    let answer = put(&device, "device-info", greedy("device-info", "9.0.0")).await;
    assert_eq!(answer.status, 409, "{answer:?}");
    let request = device.request("DELETE", "/v3/plugins/device-info");
    assert_eq!(device.send(request).await.status, 409);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(names(folder.path()), ["device_info.wasm"]);
    assert_eq!(device.get("/v2/device/name").await.status, 200);
}

#[tokio::test]
async fn a_device_that_is_not_a_developers_accepts_no_plugin() {
    let (device, folder) = device(GRANTS, &[]).await;
    let answer = put(&device, "greeter", greeter()).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(message(&answer).contains("--allow-unpinned"), "{answer:?}");
    assert_eq!(names(&folder.path().join("plugins")), [] as [&str; 0]);
    assert!(!device.state_dir().join("plugin-uploads").exists());
}
