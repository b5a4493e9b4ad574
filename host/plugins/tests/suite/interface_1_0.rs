//! Plugins that were built for version 1.0 of the interface go on: their binaries are in `tests/plugins-1.0`.

use std::fs;

use http::StatusCode;
use plugins::{BootSetting, CallerScope};

use crate::fixture::{ALL, built_for, grant_all, led, manifest, setup, shown, with_section};

/// The imports that a binary of 1.0 was linked with are those of 1.0, and not of what this is built from.
#[test]
fn item2_the_kept_binaries_are_of_1_0() {
    for name in ["all_worlds", "greeter", "led_blink", "boot_config_txt"] {
        let binary = built_for("1.0", name);
        let says = |text: &[u8]| binary.windows(text.len()).any(|window| window == text);
        assert!(says(b"@1.0.0"), "{name}");
        assert!(!says(b"@1.1.0"), "{name}");
    }
}

/// A component with the exports of the worlds `endpoint`, `identifier` and `proxy`, and all that it may import.
#[tokio::test]
async fn item2_a_component_of_1_0_calls_what_it_imports_and_is_called() {
    let manifest = manifest(
        "old",
        &format!("{ALL}\nprovides = [\"proxy-redirector\", \"identify\"]"),
    );
    let setup = setup();
    led(&setup.root.path().join("host/sys/class/leds"), "ACT");
    let file = with_section(
        &built_for("1.0", "all_worlds"),
        "platform:manifest",
        manifest.as_bytes(),
    );
    let device = setup
        .file("old.wasm", &file)
        .policy(&grant_all(&["old"]))
        .config("[old]\nidentify-fails = true\n")
        .start()
        .await;
    assert_eq!(device.report("old").interface.unwrap(), "1.0.0");
    for (what, expected) in [
        ("hello", "hello"),
        ("config", "{\"identify-fails\":true}"),
        (
            "device",
            "0123456789abcdef0123456789abcdef kitchen acme-board2 aarch64",
        ),
        ("leds", "ACT"),
        ("light?ms=1", "lit at most 100"),
        ("store?set=3", "kept"),
        ("store", "Some(3) [\"k\"]"),
        ("sleep?ms=1", "slept"),
    ] {
        let (status, body) = device.get(&format!("/v3/old/{what}")).await;
        assert_eq!(
            (status, body.as_str()),
            (StatusCode::OK, expected),
            "{what}"
        );
    }
    // It has itself do what it provides.
    let (status, body) = device.get("/v3/old/proxy").await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert!(body.contains("identify-fails"), "{body}");
    let (status, body) = device.get("/v3/old/identify").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(body.contains("FORGED"), "{body}");
    // What passes through it: a request's body and an answer's, as streams.
    let long = vec![b'x'; 100_000];
    let (status, body) = device.post("/v3/old/echo", long.clone()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body.len(), long.len());
    assert_eq!(
        device.get("/v3/old/panic").await.0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
}

/// As its author has built it with the SDK of that time, manifest included.
#[tokio::test]
async fn item2_plugins_built_with_the_sdk_of_1_0_go_on() {
    let setup = setup();
    let act = led(&setup.root.path().join("host/sys/class/leds"), "ACT");
    let boot = setup.root.path().join("host/mnt/boot");
    fs::create_dir_all(&boot).unwrap();
    fs::write(boot.join("config.txt"), "gpu_mem=64\n").unwrap();
    let policy = "[plugins.greeter]\ngrants = [\"device\"]\n[plugins.led-blink]\ngrants = [\"led\"]\n\
                  [plugins.boot-config-txt]\ngrants = [\"files\"]\n\
                  files = [{ host = \"mnt/boot\", guest = \"/boot\", write = true }]\n";
    let device = setup
        .file("greeter.wasm", &built_for("1.0", "greeter"))
        .file("led_blink.wasm", &built_for("1.0", "led_blink"))
        .file("boot_config_txt.wasm", &built_for("1.0", "boot_config_txt"))
        .policy(policy)
        .board("raspberrypi4-64")
        .start()
        .await;
    let (status, body) = device.get("/v3/greet/Ada?greeting=Salut").await;
    assert_eq!(
        (status, body.as_str()),
        (
            StatusCode::OK,
            "{\"greeting\":\"Salut, Ada! I am kitchen.\"}"
        )
    );
    let (status, body) = device.get("/v3/greet/Ada").await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    device.plugins.identify(CallerScope::DeviceKey);
    device
        .until("it blinks", |_| shown(&act) == "100 none")
        .await;
    device.plugins.shutdown().await;
    let settings = device.plugins.boot_settings().await.unwrap();
    let memory = BootSetting {
        name: "HOST_CONFIG_gpu_mem".to_owned(),
        value: "64".to_owned(),
    };
    assert_eq!(settings, [memory]);
    for name in ["greeter", "led-blink", "boot-config-txt"] {
        let report = device.report(name);
        assert_eq!(report.interface.as_deref(), Some("1.0.0"), "{name}");
        assert_eq!(report.failures, 0, "{name}");
    }
}
