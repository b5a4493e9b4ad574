//! The action `identify` with the stock provider, on an LED in the shape of the kernel's.

use std::fs;
use std::path::PathBuf;

use plugins::CallerScope;

use crate::fixture::{ALL, Fixture, Setup, component, led, manifest, plugin, setup, shown};

async fn device() -> (Fixture, PathBuf) {
    device_of(setup()).await
}

async fn device_of(setup: Setup) -> (Fixture, PathBuf) {
    let act = led(&setup.root.path().join("leds"), "ACT");
    let config = format!(
        "[led-blink]\nled_folder = \"{}\"\n",
        setup.root.path().join("leds").display()
    );
    let device = setup
        .file("led_blink.wasm", &component("led_blink"))
        .policy("[plugins.led-blink]\ngrants = [\"led\"]\n")
        .config(&config)
        .start()
        .await;
    (device, act)
}

#[tokio::test]
async fn the_led_blinks_and_is_restored_at_the_end() {
    let (device, act) = device().await;
    device.plugins.identify(CallerScope::DeviceKey);
    device
        .until("it blinks", |_| shown(&act) == "100 none")
        .await;
    device
        .until("it blinks off", |_| shown(&act) == "0 none")
        .await;
    // A second request extends the first: there is only one call.
    device.plugins.identify(CallerScope::DeviceKey);
    device
        .until("it still blinks", |_| shown(&act) == "100 none")
        .await;
    assert_eq!(device.report("led-blink").calls, 1);
    device.plugins.shutdown().await;
    assert_eq!(shown(&act), "7 mmc0");
    assert_eq!(fs::read_dir(device.path("state/leds")).unwrap().count(), 0);
}

/// This is for tools that try a plugin.
#[tokio::test]
async fn a_window_of_another_length_ends_with_the_providers_result() {
    let (device, _) = device_of(setup().in_process()).await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let time = std::time::Duration::from_secs(2);
    let shown_for = device
        .plugins
        .identify_for(CallerScope::DeviceKey, time)
        .await;
    assert_eq!(shown_for, Ok(()));
    let passed = begun.elapsed();
    assert!(passed >= time && passed < 2 * time, "{passed:?}");
}

/// Once the plugins are loaded, the clock advances whenever nothing is running.
#[tokio::test]
async fn the_window_lasts_fifteen_seconds_from_the_latest_request() {
    let (device, act) = device_of(setup().in_process()).await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    device.plugins.identify(CallerScope::DeviceKey);
    while begun.elapsed().as_secs() < 10 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    device.plugins.identify(CallerScope::DeviceKey);
    // A file that is just being written may appear empty.
    let blinking = || shown(&act) != "7 mmc0";
    while begun.elapsed().as_secs() < 24 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        assert!(blinking(), "after {:?}", begun.elapsed());
    }
    while blinking() {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        assert!(begun.elapsed().as_secs() < 28);
    }
    assert_eq!(shown(&act), "7 mmc0");
    assert_eq!(device.report("led-blink").failures, 0);
    assert_eq!(device.report("led-blink").calls, 1);
    // And again.
    device.plugins.identify(CallerScope::DeviceKey);
    device
        .until("it blinks", |_| shown(&act) == "100 none")
        .await;
    assert_eq!(device.report("led-blink").calls, 2);
}

/// A plugin that imports the action runs the provider's function, in an instance of the provider.
#[tokio::test]
async fn one_plugin_can_have_another_identify_the_device() {
    let setup = setup().in_process();
    let act = led(&setup.root.path().join("host/sys/class/leds"), "ACT");
    let policy = crate::fixture::grant_all(&["a"]) + "[plugins.led-blink]\ngrants = [\"led\"]\n";
    let device = setup
        .guest("a", "[limits]\nwall_ms = 60000\n")
        .file("led_blink.wasm", &component("led_blink"))
        .policy(&policy)
        .start()
        .await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    assert_eq!(device.get("/v3/a/identify").await.1, "identified");
    assert!(begun.elapsed().as_secs() >= 15);
    // It is restored while the answer is sent, not before.
    device
        .until("the LED is as it was", |_| shown(&act) == "7 mmc0")
        .await;
    assert_eq!(device.report("led-blink").calls, 1);
}

#[tokio::test]
async fn without_a_provider_or_an_led_it_is_a_success() {
    let device = setup().start().await;
    device.plugins.identify(CallerScope::DeviceKey);
    let device = setup()
        .file("led_blink.wasm", &component("led_blink"))
        .policy("[plugins.led-blink]\ngrants = [\"led\"]\n")
        .start()
        .await;
    device.plugins.identify(CallerScope::DeviceKey);
    device
        .until("it is called", |plugins| plugins.report()[0].calls == 1)
        .await;
    assert_eq!(device.report("led-blink").failures, 0);
}

#[tokio::test]
async fn identifying_fails_for_a_plugin_where_nothing_shows_the_device() {
    let policy = crate::fixture::grant_all(&["a"]) + "[plugins.led-blink]\ngrants = [\"led\"]\n";
    let device = setup().guest("a", "").policy(&policy).start().await;
    let (_, answer) = device.get("/v3/a/identify").await;
    let none = "no plugin of this device provides `identify`";
    assert!(answer.contains(none), "{answer}");

    // A device without an LED.
    let device = setup()
        .guest("a", "")
        .file("led_blink.wasm", &component("led_blink"))
        .policy(&policy)
        .start()
        .await;
    let (_, answer) = device.get("/v3/a/identify").await;
    let nothing = "the plugin `led-blink` has nothing to identify this device with";
    assert!(answer.contains(nothing), "{answer}");
    assert_eq!(device.report("led-blink").failures, 0);
}

#[tokio::test]
async fn an_error_of_the_provider_is_counted_and_named() {
    let provider = manifest("board", &format!("{ALL}\nprovides = [\"identify\"]"));
    let device = setup()
        .file("board.wasm", &plugin(&provider))
        .policy(&crate::fixture::grant_all(&["board"]))
        .config("[board]\nidentify-names = true\n")
        .start()
        .await;
    device.plugins.identify(CallerScope::DeviceKey);
    device
        .until("it is counted", |plugins| plugins.report()[0].failures == 1)
        .await;
    let report = device.report("board");
    assert_eq!(report.calls, 1);
    let error = report.last_error.unwrap();
    assert!(error.starts_with("`identify` failed: "), "{error}");
}

#[tokio::test]
async fn a_board_plugin_takes_the_place_of_the_stock_one() {
    let setup = setup();
    let act = led(&setup.root.path().join("host/sys/class/leds"), "ACT");
    let board = manifest(
        "board",
        &format!("{ALL}\nprovides = [\"identify\"]\nboards = [\"acme-*\"]"),
    );
    let device = setup
        .file("led_blink.wasm", &component("led_blink"))
        .file("board.wasm", &plugin(&board))
        .policy(
            &(crate::fixture::grant_all(&["board"]) + "[plugins.led-blink]\ngrants = [\"led\"]\n"),
        )
        .start()
        .await;
    device.plugins.identify(CallerScope::DeviceKey);
    device
        .until("the board's shows the device", |_| shown(&act) == "1 none")
        .await;
    assert_eq!(
        (
            device.report("board").calls,
            device.report("led-blink").calls
        ),
        (1, 0)
    );
    // Without it, the stock plugin is back.
    device.plugins.shutdown().await;
}

#[tokio::test]
async fn after_a_kill_the_led_is_restored_at_the_next_start() {
    let setup = setup();
    let act = led(&setup.root.path().join("host/sys/class/leds"), "ACT");
    let note = setup.root.path().join("state/leds/0123456789abcdef.json");
    fs::create_dir_all(note.parent().unwrap()).unwrap();
    let before = serde_json::json!({ "led": act, "before": { "brightness": 3, "trigger": "timer", "timing": [] } });
    fs::write(&note, before.to_string()).unwrap();
    fs::write(note.with_file_name("cut-short.json"), "{\"led\":").unwrap();
    let device = setup.start().await;
    assert_eq!(shown(&act), "3 timer");
    assert_eq!(fs::read_dir(device.path("state/leds")).unwrap().count(), 1);
}
