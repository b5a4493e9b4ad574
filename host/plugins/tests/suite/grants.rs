//! What plugins may do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use device_types::PluginState;
use http::StatusCode;
use os::{Action, UnitState};

use crate::fixture::{
    ALL, component, failure, grant_all, led, manifest, plugin, setup, shown, with_section,
};

#[tokio::test]
async fn a_plugin_without_its_grants_is_refused_with_the_line_that_grants_them() {
    let device = setup()
        .file("device_info.wasm", &component("device_info"))
        .file("led_blink.wasm", &component("led_blink"))
        .guest("good", "")
        .start()
        .await;
    let policy = device.path("policy.toml");
    let report = device.report("device-info");
    assert_eq!(report.state, PluginState::Refused);
    let refused = report.refused.unwrap();
    assert!(
        refused.starts_with("plugin `device-info` needs the capability `device` ("),
        "{refused}"
    );
    let end = format!(
        "), which the policy `{}` does not grant; to grant it, give its section `[plugins.device-info]` the line `grants = [\"device\"]`",
        policy.display()
    );
    assert!(refused.ends_with(&end), "{refused}");
    assert_eq!(device.plugins.problems().len(), 2);
    assert_eq!(device.get("/v3/good/hello").await.0, StatusCode::OK);
}

#[tokio::test]
async fn the_shipped_plugins_load_with_their_grants() {
    let device = setup()
        .file("device_info.wasm", &component("device_info"))
        .file("led_blink.wasm", &component("led_blink"))
        .policy("[plugins.device-info]\ngrants = [\"device\"]\n[plugins.led-blink]\ngrants = [\"led\"]\n")
        .start()
        .await;
    assert_eq!(device.plugins.problems(), [""; 0]);
    let (status, body) = device.get("/v2/device/name").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&body).unwrap(),
        serde_json::json!({ "status": "success", "deviceName": "kitchen" })
    );
    let (_, body) = device.get("/v2/local/device-info").await;
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&body).unwrap(),
        serde_json::json!({ "status": "success", "info": { "arch": "aarch64", "deviceType": "acme-board2" } })
    );
    let report = device.report("device-info");
    assert_eq!(
        (report.state, report.grants, report.calls),
        (PluginState::Running, vec!["device"], 2)
    );
    assert_eq!(report.routes.len(), 2);
    assert_eq!(device.report("led-blink").provides, ["identify"]);
}

#[tokio::test]
async fn capabilities_outside_the_manifest_are_not_linked() {
    let asks = manifest("a", "capabilities = [{ name = \"led\", reason = \"r\" }]");
    let device = setup()
        .policy(&grant_all(&["a"]))
        .file("a.wasm", &plugin(&asks))
        .start()
        .await;
    let refused = device.report("a").refused.unwrap();
    for interface in ["device", "store"] {
        let expected = format!(
            "it imports `platform:supervisor/{interface}@1.4.0`, which takes the capability `{interface}`, and its \
             manifest does not ask for that"
        );
        assert!(refused.contains(&expected), "{refused}");
    }
    assert!(!refused.contains("`led`"), "{refused}");
}

#[tokio::test]
async fn manifests_have_to_be_there_once_and_be_true() {
    let one = plugin(&manifest("one", ALL));
    let device = setup()
        .file("none.wasm", crate::fixture::guest())
        .file(
            "two.wasm",
            &with_section(&one, "platform:manifest", manifest("two", ALL).as_bytes()),
        )
        .file(
            "newer.wasm",
            &plugin(
                &manifest("newer", ALL).replace("interface = \"1.0.0\"", "interface = \"1.5.0\""),
            ),
        )
        .file("garbage.wasm", b"not wasm at all")
        .file("module.wasm", b"\0asm\x01\0\0\0")
        .file("truncated.wasm", &one[..one.len() / 2])
        .file(
            "claims.wasm",
            &with_section(
                b"\0asm\x0d\0\x01\0",
                "platform:manifest",
                manifest("claims", "provides = [\"identify\"]").as_bytes(),
            ),
        )
        .file(".hidden.wasm", b"")
        .file("notes.txt", b"")
        .start()
        .await;
    for (name, expected) in [
        ("none", "it has no section `platform:manifest`"),
        ("two", "it has 2 sections `platform:manifest`"),
        (
            "newer",
            "it needs version 1.5.0 of `platform:supervisor`, and this supervisor has 1.4.0",
        ),
        ("garbage", "it is not WebAssembly: a component begins with"),
        ("module", "it is a core module and not a component"),
        ("truncated", "it is cut off or damaged at byte "),
        (
            "claims",
            "its manifest has routes, and its component exports neither",
        ),
    ] {
        let refused = device.report(name).refused.unwrap();
        assert!(refused.starts_with(expected), "{name}: {refused}");
    }
    assert_eq!(device.plugins.report().len(), 7);
}

/// Otherwise it would be called, and each call would fail.
#[tokio::test]
async fn an_export_of_another_type_is_refused_when_it_is_loaded() {
    let component = |function: &str| {
        let text = format!(
            "(component
                (core module $m (func (export \"f\") (result i32) i32.const 0))
                (core instance $i (instantiate $m))
                (func $f (result u32) (canon lift (core func $i \"f\")))
                (instance $handler (export \"{function}\" (func $f)))
                (export \"platform:supervisor/handler@1.0.0\" (instance $handler)))"
        );
        wat::parse_str(text).unwrap()
    };
    let with_manifest = |name: &str, component: &[u8]| {
        with_section(
            component,
            "platform:manifest",
            manifest(name, "").as_bytes(),
        )
    };
    let device = setup()
        .file("typed.wasm", &with_manifest("typed", &component("handle")))
        .file("named.wasm", &with_manifest("named", &component("hand")))
        .policy(&grant_all(&["typed", "named"]))
        .start()
        .await;
    let export = "its export `platform:supervisor/handler@1.0.0` has";
    for (name, expected) in [
        ("typed", "another type than this supervisor's: `handle`: "),
        ("named", "no function `handle`"),
    ] {
        let refused = device.report(name).refused.unwrap();
        assert!(
            refused.starts_with(&format!("{export} {expected}")),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn conflicts_name_both() {
    let routes = "[[routes]]\nmethod = \"GET\"\npath = \"/V3/ONE/list\"\n";
    let core = "[[routes]]\nmethod = \"GET\"\npath = \"/v1/:what\"\n";
    let provides = format!("{ALL}\nprovides = [\"identify\"]");
    let device = setup()
        .guest("one", "provides = [\"identify\"]")
        .file("three.wasm", &plugin(&(manifest("three", ALL) + routes)))
        .file("two.wasm", &plugin(&(manifest("two", ALL) + core)))
        .file("other.wasm", &plugin(&manifest("other", &provides)))
        .file(
            "theirs.wasm",
            &plugin(&manifest(
                "theirs",
                &format!("{ALL}\nboards = [\"raspberrypi*\"]"),
            )),
        )
        .file(
            "ours.wasm",
            &plugin(&manifest(
                "ours",
                &format!("{provides}\nboards = [\"acme-*\"]"),
            )),
        )
        .file(
            "ours2.wasm",
            &plugin(&manifest(
                "ours2",
                &format!("{provides}\nboards = [\"*2\"]"),
            )),
        )
        .policy(&grant_all(&[
            "one", "two", "three", "other", "ours", "ours2", "theirs",
        ]))
        .start()
        .await;
    let refused = |name: &str| device.report(name).refused.unwrap();
    assert_eq!(
        refused("three"),
        "its route `GET /V3/ONE/list` is also the plugin `one`'s (`GET /v3/one/:what`)"
    );
    assert_eq!(
        refused("two"),
        "its route `GET /v1/:what` is the supervisor's own `GET /v1/device`"
    );
    assert_eq!(
        refused("other"),
        "`identify` is also provided by the plugin `one`; `boards` in [plugins.other] of the policy names the boards on which this one takes precedence"
    );
    // The board's own provider takes precedence over the general one, and there can only be one of
    // it.
    assert_eq!(device.report("ours").state, PluginState::Running);
    assert_eq!(
        refused("ours2"),
        "`identify` is also provided by the plugin `ours`"
    );
    assert_eq!(device.report("theirs").state, PluginState::OtherBoard);
}

#[tokio::test]
async fn the_device_and_the_configuration_can_be_read() {
    let device = setup()
        .guest("a", "")
        .config("[a]\nled = \"ACT\"\nnested = { x = 1 }\n[b]\nsecret = 1\n")
        .start()
        .await;
    assert_eq!(
        device.get("/v3/a/device").await.1,
        "0123456789abcdef0123456789abcdef kitchen acme-board2 aarch64"
    );
    assert_eq!(
        device.get("/v3/a/device-state").await.1,
        "{\"api_port\":48484}"
    );
    assert_eq!(
        device.get("/v3/a/config").await.1,
        "{\"led\":\"ACT\",\"nested\":{\"x\":1}}"
    );
    assert_eq!(
        device.get("/v3/a/environment").await.1,
        "[] Args { inner: [] }"
    );
}

#[tokio::test]
async fn each_plugin_has_a_store_of_its_own() {
    let device = setup().guest("a", "").guest("b", "").start().await;
    assert_eq!(
        device.get("/v3/a/store?set=100").await,
        (StatusCode::OK, "kept".to_owned())
    );
    assert_eq!(device.get("/v3/a/store").await.1, "Some(100) [\"k\"]");
    assert_eq!(device.get("/v3/b/store").await.1, "None []");
    let (status, body) = device.get("/v3/a/store?set=70000").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("TooLarge"), "{body}");
    assert_eq!(device.get("/v3/a/store").await.1, "Some(100) [\"k\"]");
}

#[tokio::test]
async fn files_are_those_of_the_policy_and_no_others() {
    let setup = setup();
    let root = setup.root.path().to_owned();
    for folder in ["shown", "shown/sub", "open"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    fs::write(root.join("shown/note"), "a note").unwrap();
    fs::write(root.join("secret"), "a secret").unwrap();
    for (link, target) in [
        ("up", "../secret"),
        ("absolute", "/etc/passwd"),
        ("folder", ".."),
    ] {
        std::os::unix::fs::symlink(target, root.join("shown").join(link)).unwrap();
        std::os::unix::fs::symlink(target, root.join("open").join(link)).unwrap();
    }
    let policy = format!(
        "{}files = [{{ host = \"{shown}\", guest = \"/shown\" }}, {{ host = \"{open}\", guest = \"/open\", write = true }}]\n{}",
        grant_all(&["a"]),
        grant_all(&["b"]),
        shown = root.join("shown").display(),
        open = root.join("open").display(),
    );
    let device = setup
        .guest("a", "")
        .guest("b", "")
        .policy(&policy)
        .start()
        .await;
    for (call, status, expected) in [
        ("read?path=/shown/note", 200, "a note"),
        ("list?path=/shown/sub", 200, ""),
        ("write?path=/open/new", 200, "done"),
        ("read?path=/open/new", 200, "written"),
        ("remove?path=/open/new", 200, "done"),
    ] {
        let (found, body) = device.get(&format!("/v3/a/{call}")).await;
        assert_eq!(
            (found.as_u16(), body.as_str()),
            (status, expected),
            "{call}"
        );
    }
    for call in [
        "write?path=/shown/note",
        "write?path=/shown/new",
        "remove?path=/shown/note",
        "read?path=/shown/up",
        "read?path=/shown/absolute",
        "read?path=/shown/folder/secret",
        "read?path=/shown/../secret",
        "read?path=/open/../../secret",
        "write?path=/open/up",
        "write?path=/open/folder/new",
        "read?path=/etc/passwd",
        "list?path=/",
        "list?path=/shown/..",
    ] {
        let (found, body) = device.get(&format!("/v3/a/{call}")).await;
        assert_eq!(found, StatusCode::FORBIDDEN, "{call}: {body}");
    }
    // The grant without a folder provides nothing.
    for call in ["read?path=/shown/note", "list?path=/", "list?path=/shown"] {
        assert_eq!(
            device.get(&format!("/v3/b/{call}")).await.0,
            StatusCode::FORBIDDEN,
            "{call}"
        );
    }
    assert_eq!(fs::read_to_string(root.join("secret")).unwrap(), "a secret");
    assert_eq!(
        fs::read_to_string(root.join("shown/note")).unwrap(),
        "a note"
    );
    assert!(!root.join("new").exists());
}

/// Whoever may write a folder above a granted one could put a link to `/etc` in its place.
#[tokio::test]
async fn a_granted_folder_that_others_can_replace_is_not_used() {
    let setup = setup();
    let root = setup.root.path().to_owned();
    let (shared, data, secrets) = (
        root.join("shared"),
        root.join("shared/data"),
        root.join("secrets"),
    );
    for folder in [&shared, &data, &secrets] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("note"), "a note").unwrap();
    }
    let policy = format!(
        "{}files = [{{ host = \"{}\", guest = \"/data\", write = true, create = true }}]\n",
        grant_all(&["a"]),
        data.display(),
    );
    let device = setup.guest("a", "").policy(&policy).start().await;
    let read = "/v3/a/read?path=/data/note";
    assert_eq!(device.get(read).await.1, "a note");

    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    fs::remove_file(data.join("note")).unwrap();
    fs::remove_dir(&data).unwrap();
    std::os::unix::fs::symlink(&secrets, &data).unwrap();
    for call in ["read?path=/data/note", "write?path=/data/note"] {
        let (status, _) = device.get(&format!("/v3/a/{call}")).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{call}");
    }
    let reason = device.report("a").last_error.unwrap();
    for part in [&data, &shared] {
        assert!(
            reason.contains(&format!("`{}`", part.display())),
            "{reason}"
        );
    }
    // Nor does root create a folder where that link leads.
    fs::remove_file(&data).unwrap();
    std::os::unix::fs::symlink(root.join("elsewhere"), &data).unwrap();
    assert_eq!(device.get(read).await.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!root.join("elsewhere").exists());
    let note = fs::read_to_string(secrets.join("note")).unwrap();
    assert_eq!(note, "a note");

    // Once nobody else can replace it, the next call uses it.
    fs::remove_file(&data).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(&data).unwrap();
    fs::write(data.join("note"), "another note").unwrap();
    assert_eq!(device.get(read).await.1, "another note");
}

#[tokio::test]
async fn leds_are_narrowed_by_the_policy_and_restored_whatever_happens() {
    let setup = setup();
    let leds = setup.root.path().join("host/sys/class/leds");
    let (act, pwr) = (led(&leds, "ACT"), led(&leds, "PWR"));
    let policy = grant_all(&["a"]) + "leds = [\"ACT\"]\n" + &grant_all(&["b"]);
    let device = setup
        .guest("a", "[limits]\nwall_ms = 2000\n")
        .guest("b", "")
        .policy(&policy)
        .start()
        .await;
    assert_eq!(device.get("/v3/a/leds").await.1, "ACT");
    assert_eq!(device.get("/v3/b/leds").await.1, "ACT PWR");
    for name in ["PWR", "gone", "..", "../../leds/ACT"] {
        let (status, body) = device.get(&format!("/v3/a/light?name={name}")).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert!(body.contains("NotFound"), "{body}");
    }
    assert_eq!(device.get("/v3/a/light?ms=1").await.1, "lit at most 100");
    device
        .until("the LED is restored", |_| shown(&act) == "7 mmc0")
        .await;
    // A trap, and a time-out.
    assert_eq!(
        device.get("/v3/a/light-and-panic").await.0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    device
        .until("the LED is restored", |_| shown(&act) == "7 mmc0")
        .await;
    assert_eq!(
        device.get("/v3/a/light").await.1,
        failure("plugin `a` did not answer within 2000 ms")
    );
    device
        .until("the LED is restored", |_| shown(&act) == "7 mmc0")
        .await;
    assert_eq!(shown(&pwr), "7 none [mmc0] timer");
}

#[tokio::test]
async fn a_folder_may_be_below_the_hosts_root_and_made_where_it_is_missing() {
    let setup = setup();
    let host_root = setup.root.path().join("host");
    let policy = format!(
        "{}files = [{{ host = \"mnt/boot/of-a\", guest = \"/mine\", write = true, create = true }}]\n\
         {}files = [{{ host = \"mnt/missing\", guest = \"/mine\" }}]\n\
         {}files = [{{ host = \"in-the-way/c\", guest = \"/mine\", create = true }}]\n",
        grant_all(&["a"]),
        grant_all(&["b"]),
        grant_all(&["c"]),
    );
    fs::create_dir_all(&host_root).unwrap();
    fs::write(host_root.join("in-the-way"), "a file").unwrap();
    let device = setup
        .guest("a", "")
        .guest("b", "")
        .guest("c", "")
        .policy(&policy)
        .start()
        .await;
    let (_, written) = device.get("/v3/a/write?path=/mine/new").await;
    assert_eq!(written, "done");
    let file = host_root.join("mnt/boot/of-a/new");
    assert_eq!(fs::read_to_string(file).unwrap(), "written");
    // The folder neither exists nor is it created: calls fail, with an error.
    assert_eq!(
        device.get("/v3/b/hello").await.0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    // If the folder cannot be created, the plugin does not see it, but is called anyway.
    assert_eq!(device.get("/v3/c/hello").await.0, StatusCode::OK);
    let (status, _) = device.get("/v3/c/list?path=/mine").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn only_the_units_of_the_policy_are_seen_and_restarted() {
    let setup = setup();
    let os = Arc::clone(&setup.os);
    for name in ["vpn.service", "ssh.service"] {
        os.set_unit(
            name.parse().unwrap(),
            UnitState::new("loaded", "active", "running"),
        );
    }
    let policy =
        grant_all(&["a"]) + "units = [\"vpn.service\", \"gone.service\"]\n" + &grant_all(&["b"]);
    let device = setup
        .guest("a", "")
        .guest("b", "")
        .policy(&policy)
        .start()
        .await;
    for (call, expected) in [
        ("a/unit?name=vpn.service", "loaded active running"),
        ("a/unit?name=gone.service", "not-found inactive dead"),
        ("a/restart-unit?name=vpn.service", "restarted"),
    ] {
        let answer = device.get(&format!("/v3/{call}")).await;
        assert_eq!(answer, (StatusCode::OK, expected.to_owned()), "{call}");
    }
    for call in [
        "a/unit?name=ssh.service",
        "a/restart-unit?name=ssh.service",
        "a/restart-unit?name=*",
        "a/restart-unit?name=",
        "a/restart-unit?name=--force",
        "b/unit?name=vpn.service",
        "b/restart-unit?name=vpn.service",
    ] {
        let (status, body) = device.get(&format!("/v3/{call}")).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{call}");
        assert!(body.contains("NotGranted"), "{call}: {body}");
    }
    let restarted = Action::Restart("vpn.service".parse().unwrap());
    assert_eq!(os.actions(), [restarted]);
}
