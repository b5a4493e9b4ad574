//! Plugins that were built for version 1.2 of the interface go on: their binaries are in `tests/plugins-1.2`.

use http::StatusCode;
use plugins::INTERFACE;

use crate::fixture::{ALL, built_for, grant_all, manifest, setup, with_section};

#[test]
fn item2_the_kept_binaries_are_of_1_2() {
    assert_eq!(INTERFACE.minor, 3, "keep binaries of {INTERFACE} as well");
    for name in ["all_worlds", "greeter"] {
        let binary = built_for("1.2", name);
        let says = |text: &[u8]| binary.windows(text.len()).any(|window| window == text);
        assert!(says(b"@1.2.0"), "{name}");
        assert!(!says(b"@1.3.0"), "{name}");
    }
}

#[tokio::test]
async fn item2_plugins_of_1_2_go_on() {
    let old = with_section(
        &built_for("1.2", "all_worlds"),
        "platform:manifest",
        manifest("old", ALL).as_bytes(),
    );
    let policy = grant_all(&["old"]) + "[plugins.greeter]\ngrants = [\"device\"]\n";
    let device = setup()
        .file("old.wasm", &old)
        .file("greeter.wasm", &built_for("1.2", "greeter"))
        .policy(&policy)
        .start()
        .await;
    assert_eq!(device.report("greeter").interface.unwrap(), "1.2.0");
    for (path, expected) in [
        ("/v3/old/hello", "hello"),
        ("/v3/old/caller", "CallerScope::DeviceKey None"),
        ("/v3/old/store?set=3", "kept"),
        ("/v3/old/sleep?ms=1", "slept"),
        (
            "/v3/greet/Ada?greeting=Salut",
            "{\"greeting\":\"Salut, Ada! I am kitchen.\"}",
        ),
    ] {
        let (status, body) = device.get(path).await;
        assert_eq!(
            (status, body.as_str()),
            (StatusCode::OK, expected),
            "{path}"
        );
    }
}
