//! Fields in the device's report: compared by tests, and present from the start.

use std::time::Duration;

use plugin_test_host::Host;
use tests::guest;

use crate::author::Author;
use crate::languages::can_build;

const AT_START: &str = r#"
import { report, timer } from "supervisor-sdk";

export async function watch() {
  await timer.sleep(500);
  await report.set("level", 7);
}
"#;

#[tokio::test]
async fn a_plugin_that_reports_at_its_start_is_never_without_its_fields() {
    if !can_build("javascript") {
        return;
    }
    let author = Author::with_project("javascript");
    author.append("rails/src/plugin.js", AT_START);
    author.edit(
        "rails/plugin.toml",
        "[capabilities]\n",
        "[provides]\nevents = \"watch\"\n\n[capabilities]\nreport = \"tells how full the tank is\"\n",
    );
    author.edit(
        "rails/plugin.toml",
        "version = \"0.1.0\"",
        "version = \"0.1.0\"\nevents = [\"start\"]",
    );
    author.run_in("rails", "build").succeeds();
    let host = Host::new()
        .plugin(author.path("rails/rails.wasm"))
        .policy("[plugins.rails]\ngrants = [\"store\", \"report\"]\nevents = [\"start\"]\n")
        .start()
        .await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(240);
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
}

#[test]
fn what_a_plugin_reports_is_compared_in_tests() {
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
