//! Typed actions between plugins, using `proxy-redirector` as the example: which plugin is called,
//! and how a provider's failure affects its caller.

use http::StatusCode;
use plugin_protocol::{ACTION_BYTES, OwnActionError};
use plugins::{CallerScope, OsCall};

use crate::fixture::{ALL, Fixture, component, grant_all, manifest, plugin, setup, with_section};

/// A caller, and a provider with its own configuration and limits.
async fn caller_and_provider() -> Fixture {
    let provides = "provides = [\"proxy-redirector\"]\n[limits]\nwall_ms = 2000\ncpu_ms = 200\n";
    setup()
        .guest("caller", "[limits]\nwall_ms = 60000\n")
        .guest("provider", provides)
        .config("[provider]\nwho = \"the provider\"\n")
        .start()
        .await
}

#[tokio::test]
async fn a_call_runs_in_an_instance_of_the_providers_own() {
    let device = caller_and_provider().await;
    let (status, body) = device.get("/v3/caller/proxy").await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert!(body.contains("the provider"), "{body}");
    assert_eq!(device.report("provider").provides, ["proxy-redirector"]);
    assert_eq!(device.report("provider").calls, 1);
    assert_eq!(device.report("caller").calls, 1);
}

#[tokio::test]
async fn a_providers_failure_is_an_error_of_the_call_and_counted_as_the_providers() {
    let device = caller_and_provider().await;
    for (address, expected) in [
        ("trap", "plugin `provider` failed: wasm trap"),
        ("wait", "plugin `provider` did not answer within 2000 ms"),
        (
            "spin",
            "plugin `provider` used more than its 200 ms of CPU time",
        ),
        ("refuse", "ProxyError::Invalid"),
    ] {
        let path = format!("/v3/caller/set-proxy?address={address}");
        let (status, body) = device.get(&path).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{address}");
        assert!(body.contains(expected), "{address}: {body}");
    }
    let (status, body) = device.get("/v3/caller/set-proxy").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "()"));
    assert_eq!(device.report("provider").failures, 3);
    assert_eq!(device.report("caller").failures, 0);
}

#[tokio::test]
async fn without_a_provider_the_call_says_so() {
    let device = setup().guest("caller", "").start().await;
    let (status, body) = device.get("/v3/caller/proxy").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    let expected = "no plugin of this device provides `proxy-redirector`";
    assert!(body.contains(expected), "{body}");
}

#[tokio::test]
async fn a_circle_of_plugins_ends_and_leaves_the_others_their_places() {
    let device = caller_and_provider().await;
    let (status, body) = device.get("/v3/caller/proxy-circle").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(
        body.contains("plugins wait for each other 4 deep"),
        "{body}"
    );
    assert_eq!(device.report("provider").calls, 4);
    assert_eq!(device.get("/v3/caller/hello").await.1, "hello");
}

/// A longer input is refused before the provider is called, so it costs the provider nothing.
#[tokio::test]
async fn the_input_of_a_plugins_own_action_is_bounded() {
    let device = setup()
        .file("acme_rails.wasm", &component("acme_rails"))
        .policy(&grant_all(&["acme-rails"]))
        .start()
        .await;
    let call = async |bytes: usize| {
        let plugins = &device.plugins;
        let input = vec![b' '; bytes];
        let scope = CallerScope::DeviceKey;
        plugins
            .call_own_action(scope, "panel", "acme-rails/set", input)
            .await
    };
    // The provider itself refuses what is not JSON.
    let longest = call(ACTION_BYTES).await;
    assert!(
        matches!(longest, Err(OwnActionError::Refused(_))),
        "{longest:?}"
    );
    assert_eq!(device.report("acme-rails").calls, 1);
    let expected = OwnActionError::Invalid("the input has more than 512 KiB".to_owned());
    assert_eq!(call(ACTION_BYTES + 1).await, Err(expected));
    assert_eq!(device.report("acme-rails").calls, 1);
}

#[tokio::test]
async fn a_boards_provider_goes_before_the_general_one_and_gives_way_when_it_goes() {
    let provides = format!("{ALL}\nprovides = [\"proxy-redirector\"]");
    let board = format!("{provides}\nboards = [\"acme-*\"]");
    let names = ["caller", "general", "board", "second"];
    let device = setup()
        .file("caller.wasm", &plugin(&manifest("caller", ALL)))
        .file("general.wasm", &plugin(&manifest("general", &provides)))
        .file("board.wasm", &plugin(&manifest("board", &board)))
        .file("second.wasm", &plugin(&manifest("second", &provides)))
        .policy(&grant_all(&names))
        .start()
        .await;
    let refused = device.report("second").refused.unwrap();
    let expected =
        "`proxy-redirector` is also provided by the plugin `general`; `boards` in [plugins.second]";
    assert!(refused.starts_with(expected), "{refused}");
    let calls = |name: &str| device.report(name).calls;
    assert_eq!(device.get("/v3/caller/proxy").await.0, StatusCode::OK);
    assert_eq!((calls("board"), calls("general")), (1, 0));
    std::fs::remove_file(device.path("plugins/board.wasm")).unwrap();
    device
        .until("the board's is gone", |plugins| {
            plugins.report().iter().all(|plugin| plugin.name != "board")
        })
        .await;
    assert_eq!(device.get("/v3/caller/proxy").await.0, StatusCode::OK);
    assert_eq!(calls("general"), 1);
}

#[tokio::test]
async fn a_plugin_that_says_it_provides_what_it_does_not_export_is_refused() {
    let manifest = manifest("claims", "provides = [\"proxy-redirector\"]");
    let (manifest, _routes) = manifest.split_once("[[routes]]").unwrap();
    let file = with_section(
        b"\0asm\x0d\0\x01\0",
        "platform:manifest",
        manifest.as_bytes(),
    );
    let device = setup().file("claims.wasm", &file).start().await;
    let refused = device.report("claims").refused.unwrap();
    assert!(
        refused.contains(
            "does not export `platform:supervisor/proxy-redirector`: write a type (Rust, Go), "
        ),
        "{refused}"
    );
}

#[tokio::test]
async fn of_two_plugins_that_update_the_operating_system_the_second_is_refused() {
    let provides = format!("{ALL}\nprovides = [\"os-update\"]\n[limits]\nwall_ms = 500\n");
    let device = setup()
        .file("first.wasm", &plugin(&manifest("first", &provides)))
        .file("second.wasm", &plugin(&manifest("second", &provides)))
        .policy(&grant_all(&["first", "second"]))
        .start()
        .await;
    let refused = device.report("second").refused.unwrap();
    let expected = "`os-update` is also provided by the plugin `first`";
    assert!(refused.starts_with(expected), "{refused}");
    // The first one's answer is not a version.
    let error = device.plugins.os_status().await.unwrap_err().to_string();
    let expected = "the provider of `os-update` says that a version is `";
    assert!(error.starts_with(expected), "{error}");
    for (call, expected) in [
        (OsCall::Activate, "there is nothing to activate"),
        (OsCall::Commit, "plugin `first` failed"),
        (
            OsCall::Stage {
                source: "/data/bundle".to_owned(),
                version: "2".to_owned(),
            },
            "plugin `first` did not answer within 500 ms",
        ),
    ] {
        let error = device.plugins.update_os(call).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.len() < 10_000, "{}", error.len());
    }
    assert_eq!(device.plugins.update_os(OsCall::RollBack).await, Ok(()));
    assert_eq!(device.report("first").calls, 5);
}
