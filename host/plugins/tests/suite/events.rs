//! Events on the device: which plugin is called for them, and when.

use std::fs;
use std::time::Duration;

use plugins::{PluginEvent, ServiceChange, TargetProgress};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{ALL, Fixture, component, grant_all, manifest, plugin, setup, with_section};

/// Returns one of many files of the example that keeps a record of its events.
fn record(number: u8) -> Vec<u8> {
    with_section(&component("update_hold"), "number", &[number])
}

const RECORD: &str = "[plugins.update-hold]\ngrants = [\"store\"]\n\
                      events = [\"start\", \"schedule\", \"services\", \"target\", \"connection\", \"update-gate\"]\n";

/// Returns the recorded events, once these are among them.
async fn until_recorded(device: &Fixture, expected: &[&str]) -> Vec<String> {
    tests::until("the events", || async {
        let (_, body) = device.get("/v3/update-hold").await;
        let state: Value = serde_json::from_str(&body).unwrap_or_default();
        let events: Vec<String> =
            serde_json::from_value(state["events"].clone()).unwrap_or_default();
        if expected
            .iter()
            .all(|line| events.iter().any(|event| event == line))
        {
            Ok(events)
        } else {
            Err(body)
        }
    })
    .await
}

#[tokio::test]
async fn a_file_that_takes_a_plugins_place_has_its_own_start_and_all_later_events() {
    let device = setup()
        .first_start()
        .file("update-hold.wasm", &record(1))
        .policy(RECORD)
        .start()
        .await;
    let first = "start, first of this boot: true";
    until_recorded(&device, &[first]).await;
    device.replace("update-hold.wasm", &record(2));
    // Installed later, it has not missed the beginning of the boot.
    let second = "start, first of this boot: false";
    until_recorded(&device, &[second]).await;
    device.plugins.publish(&PluginEvent::Connection(true));
    let events = until_recorded(&device, &["connection true"]).await;
    let count = |line: &str| events.iter().filter(|event| *event == line).count();
    let counts = [first, second, "connection true"].map(count);
    assert_eq!(counts, [1, 1, 1], "{events:?}");
}

#[tokio::test]
async fn a_plugin_that_is_removed_is_not_called_any_more() {
    let device = setup()
        .file("update-hold.wasm", &record(1))
        .policy(RECORD)
        .in_process()
        .start()
        .await;
    until_recorded(&device, &["start, first of this boot: false"]).await;
    fs::remove_file(device.path("plugins/update-hold.wasm")).unwrap();
    device
        .until("it is gone", |plugins| plugins.report().is_empty())
        .await;
    // Its schedule would be due by now.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(60)).await;
    tokio::time::resume();
    let kept = device.store.plugin_get("update-hold", "events").unwrap();
    let kept: Value = serde_json::from_slice(&kept.unwrap()).unwrap();
    assert_eq!(kept, json!(["start, first of this boot: false"]));
}

/// Starts a device with a plugin for these events; once it is loaded, the clock advances whenever nothing is running.
async fn watcher(events: &str, config: &str) -> Fixture {
    let more = format!("{ALL}\nprovides = [\"events\"]\nevents = [{events}]");
    let device = setup()
        .file("press.wasm", &plugin(&manifest("press", &more)))
        .policy(&format!("{}events = [{events}]\n", grant_all(&["press"])))
        .config(config)
        .in_process()
        .start()
        .await;
    tokio::time::pause();
    device
}

async fn until_answered(device: &Fixture) {
    device
        .until("the events are answered", |plugins| {
            plugins.events_are_answered()
        })
        .await;
}

#[tokio::test]
async fn a_plugin_that_fails_at_an_event_has_failed() {
    let device = watcher("\"connection\"", "[press]\nevent-fails = true\n").await;
    device.plugins.publish(&PluginEvent::Connection(true));
    until_answered(&device).await;
    let report = device.report("press");
    assert_eq!((report.calls, report.failures), (1, 1));
    let last = report.last_error.unwrap();
    let expected = "the event `connection` failed: the press";
    assert!(last.starts_with(expected), "{last}");
}

#[tokio::test]
async fn a_plugin_rests_between_two_events() {
    let device = watcher("\"connection\", \"target\"", "").await;
    let begin = Instant::now();
    device.plugins.publish(&PluginEvent::Connection(true));
    let progress = TargetProgress::Reached;
    device.plugins.publish(&PluginEvent::Target(progress));
    until_answered(&device).await;
    assert!(begin.elapsed() >= Duration::from_millis(100));
    assert_eq!(device.report("press").calls, 2);
}

#[tokio::test]
async fn changes_for_which_a_plugin_is_not_called_are_counted_in_its_log() {
    let device = watcher("\"services\"", "").await;
    let change = |number: u32| ServiceChange {
        app_id: 1,
        service: format!("s{number}"),
        status: Some("Running".to_owned()),
        before: None,
    };
    let changes = (0..4096 + 7).map(change).collect();
    device.plugins.publish(&PluginEvent::Services(changes));
    until_answered(&device).await;
    assert_eq!(device.report("press").calls, 16);
    let lines = device.plugins.log("press", 0).unwrap().lines;
    let lines: Vec<_> = lines.iter().map(|line| line.message.as_str()).collect();
    let expected =
        "7 changes of services were dropped, since too many waited while the plugin was busy";
    assert_eq!(lines, [expected]);
}

#[tokio::test]
async fn fields_of_the_report_wait_until_plugins_have_been_called_for_their_start() {
    let device = setup()
        .file(
            "press.wasm",
            &plugin(&manifest(
                "press",
                &format!("{ALL}\nprovides = [\"events\"]\nevents = [\"start\"]"),
            )),
        )
        .policy(&format!("{}events = [\"start\"]\n", grant_all(&["press"])))
        .config("[press]\nevent-sleeps = true\n")
        .in_process()
        .start()
        .await;
    assert_eq!(device.plugins.fields(), None);
}
