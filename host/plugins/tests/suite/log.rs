//! The last lines of plugins, as the device shows them.

use device_types::{PluginLog, PluginLogLevel};

use crate::fixture::setup;

#[tokio::test]
async fn the_lines_and_the_failures_of_a_plugin_are_kept_for_it_alone() {
    let device = setup().guest("bad", "").guest("good", "").start().await;
    device.get("/v3/bad/panic").await;
    // The answer may be there before the lines.
    device
        .until("the last line of the panic", |plugins| {
            let log = plugins.log("bad", 0).unwrap_or_default();
            log.lines.iter().any(|line| line.message == "in two lines")
        })
        .await;
    let log = device.plugins.log("bad", 0).unwrap();
    let failures: Vec<_> = log
        .lines
        .iter()
        .filter(|line| line.level == PluginLogLevel::Error)
        .map(|line| &*line.message)
        .collect();
    let expected = "plugin `bad` panicked: this plugin panics";
    assert!(
        failures.iter().any(|line| line.contains(expected)),
        "{log:?}"
    );
    // Of the plugin's own lines, the one about a variable that a plugin does not have is left out.
    let printed = log
        .lines
        .iter()
        .filter(|line| line.level == PluginLogLevel::Warn);
    let printed: Vec<_> = printed.map(|line| &*line.message).collect();
    assert!(printed.contains(&"this plugin panics"), "{printed:?}");
    let has_advice = printed.iter().any(|line| line.contains("RUST_BACKTRACE"));
    assert!(!has_advice, "{printed:?}");

    device.get("/v3/bad/log").await;
    let before = log.newest;
    device
        .until("a line of the call", |plugins| {
            let log = plugins.log("bad", before).unwrap_or_default();
            log.lines
                .iter()
                .any(|line| line.message.starts_with("line "))
        })
        .await;
    let log = device.plugins.log("bad", before).unwrap();
    let messages: Vec<_> = log.lines.iter().map(|line| &*line.message).collect();
    // The last line is about those that a call may not write any more; the others are the plugin's
    // own.
    assert!(
        messages.iter().any(|line| line.starts_with("line ")),
        "{messages:?}"
    );
    assert!(messages.len() <= 100, "{}", messages.len());

    assert_eq!(device.plugins.log("good", 0), Some(PluginLog::default()));
    assert_eq!(device.plugins.log("nobody", 0), None);
}
