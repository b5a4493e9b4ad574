//! Fields in the device's report: compared by tests, and present from the start and after events.

use std::time::Duration;

use plugin_test_host::{EmbeddedHost, Host};
use tests::guest;

use crate::author::{Author, compiled_code};
use crate::languages::can_build;

/// Takes a while for each event, and fails if the device is connected.
const AT_EVENTS: &str = r#"
import { Conflict, config, log, report, timer } from "supervisor-sdk";

export async function watch(event) {
  log.info(`received ${event.kind}`);
  if (config.read()?.isBroken) throw new Conflict("the tank leaks");
  await timer.sleep(500);
  if (event.isConnected) throw new Conflict("the tank is empty");
  await report.set("level", event.kind === "start" ? 7 : 8);
}
"#;

const POLICY: &str = r#"
[plugins.rails]
grants = ["store", "report"]
events = ["start", "connection"]
"#;

const STEPS: &str = r#"device = "device.toml"

[[report]]
fields = { level = { value = 7 } }

[[log]]
lines = ["info: received start"]

[[event]]
connection = false

[[report]]
fields = { level = { value = 8 } }
"#;

#[tokio::test]
async fn a_plugin_that_reports_at_events_is_never_without_its_fields() {
    if !can_build("javascript") {
        return;
    }
    let author = Author::with_project("javascript");
    author.append("rails/src/plugin.js", AT_EVENTS);
    author.edit(
        "rails/plugin.toml",
        "[capabilities]\n",
        "[provides]\nevents = \"watch\"\n\n[capabilities]\nreport = \"tells how full the tank is\"\n",
    );
    author.edit(
        "rails/plugin.toml",
        "version = \"0.1.0\"",
        "version = \"0.1.0\"\nevents = [\"start\", \"connection\"]",
    );
    author.run_in("rails", "build").succeeds();
    let device = Host::new()
        .plugin(author.path("rails/rails.wasm"))
        .policy(POLICY);
    let host = EmbeddedHost::new(device)
        // The tool has compiled most of it for other tests.
        .code_cache(compiled_code())
        .reuse_functions()
        .start()
        .await;
    let deadline = tokio::time::Instant::now() + tests::DEADLINE;
    let plugins = loop {
        if let Some(plugins) = host.reporting_plugins() {
            break plugins;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "it does not come to report"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(plugins, ["rails"]);

    author.write("device.toml", "");
    author.write("rails.toml", STEPS);
    let words = "test rails/rails.wasm --file rails.toml";
    let passed = author.run(words).succeeds();
    assert!(passed.out.contains("4 passed, 0 failed"), "{}", passed.out);

    author.edit("rails.toml", "connection = false", "connection = true");
    author.edit("rails.toml", "value = 8", "value = 7");
    let failed = author.run(words).fails();
    for line in [
        "failed rails.toml:9 event connection",
        "expected no failure, got",
        "the tank is empty",
        "3 passed, 1 failed",
    ] {
        assert!(failed.out.contains(line), "{line} in {}", failed.out);
    }

    author.write("device.toml", "[config]\nisBroken = true\n");
    let failed = author.run(words).fails();
    let note =
        "rails.toml: the plugin failed at the event of the device's start, before the first step: ";
    assert!(failed.err.contains(note), "{}", failed.err);
}

#[test]
fn tests_compare_the_fields_that_a_plugin_reports() {
    let author = Author::new();
    let gauge = guest("tank_gauge").display().to_string();
    author.write("device.toml", "");
    author.write(
        "gauge.toml",
        r#"device = "device.toml"

[[request]]
post = "/v3/tanks/north"
json = { level = 0.4 }
answer = { status = 200 }

[[report]]
fields = { last_tank = { value = "north" }, last_level = { value = 40, unit = "%" } }
"#,
    );
    let words = format!("test {gauge} --file gauge.toml");
    let passed = author.run(&words).succeeds();
    assert!(passed.out.contains("2 passed, 0 failed"), "{}", passed.out);

    author.edit("gauge.toml", "value = 40", "value = 41");
    let failed = author.run(&words).fails();
    for line in [
        "failed gauge.toml:8 report",
        "expected the fields {",
        "1 passed, 1 failed",
    ] {
        assert!(failed.out.contains(line), "{line} in {}", failed.out);
    }
}
