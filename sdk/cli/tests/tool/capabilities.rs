//! Capabilities in the languages that have their own modules for them, called from plugins in the device's runtime.
//!
//! One plugin per language calls all of them, because compiling a runtime such as Python's takes most of the time.

mod board;
mod clocks_and_files;
mod cloud_and_bus;
mod leds_and_units;
mod lines_and_chips;
mod other_plugins;
mod ports_and_locks;
mod proxy;
mod report_fields;
mod store_in_c;
mod streams;
mod streams_and_files;
mod whole_answers;
mod whole_numbers;

use std::fs;

use plugin_manifest::Manifest;
use plugin_test_host::{EmbeddedHost, Host, RunningHost};
use serde_json::json;
use tests::{PseudoTerminal, guest};

use crate::author::{Author, compiled_code};
use crate::languages::can_build;

/// A capability, or several that belong together.
struct Capability {
    /// Part of the plugin's source, with one handler.
    javascript: &'static str,
    python: &'static str,
    /// Lines of `[capabilities]`.
    reasons: &'static str,
    /// The route of the handler: the method and the path, and the handler's name.
    route: (&'static str, &'static str),
    /// Part of the device's file.
    device: &'static str,
    /// Part of the test.
    steps: &'static str,
}

const ALL: [Capability; 12] = [
    whole_numbers::CAPABILITY,
    report_fields::CAPABILITY,
    whole_answers::CAPABILITY,
    lines_and_chips::CAPABILITY,
    board::CAPABILITY,
    leds_and_units::CAPABILITY,
    cloud_and_bus::CAPABILITY,
    ports_and_locks::CAPABILITY,
    other_plugins::CAPABILITY,
    proxy::CAPABILITY,
    clocks_and_files::CAPABILITY,
    streams::CAPABILITY,
];
/// The number of steps of all of them.
const STEPS: usize = 23;

/// Returns the part of each capability in the plugin's source in JavaScript.
pub(crate) fn javascript() -> String {
    ALL.iter().map(|capability| capability.javascript).collect()
}

async fn check(language: &str, source: &str, more: fn(&Capability) -> &'static str, refused: &str) {
    if !can_build(language) {
        return;
    }
    let author = Author::with_project(language);
    let of_all = |part: fn(&Capability) -> &'static str| ALL.iter().map(part).collect::<String>();
    author.append(&format!("rails/{source}"), &of_all(more));
    let reasons = of_all(|capability| capability.reasons);
    author.edit(
        "rails/plugin.toml",
        "[capabilities]\n",
        &format!("[capabilities]\n{reasons}"),
    );
    let routes = ALL.iter().map(|Capability { route, .. }| {
        let (route, handler) = route;
        format!("\"{route}\" = \"{handler}\"\n")
    });
    let routes: String = routes.collect();
    author.edit(
        "rails/plugin.toml",
        "[routes]\n",
        &format!("[routes]\n{routes}"),
    );
    // The device identifies itself for longer than a call may take by default.
    let limits = if author.read("rails/plugin.toml").contains("[limits]\n") {
        "wall_ms = 30000\n"
    } else {
        "\n[limits]\nwall_ms = 30000\n"
    };
    author.append("rails/plugin.toml", limits);
    author.write("rails/device.toml", &of_all(|capability| capability.device));
    let steps = of_all(|capability| capability.steps);
    author.write(
        "rails/test/hello.toml",
        &steps.replace("REFUSED_NUMBERS", refused),
    );
    let passed = author.run_in("rails", "test").succeeds();
    let expected = format!("{STEPS} passed, 0 failed");
    assert!(passed.out.contains(&expected), "{}", passed.out);

    let port = PseudoTerminal::open();
    let host = start_beside_others(&author, port.name()).await;
    uses_a_port_under_the_locks(&host, &port).await;
    uses_the_proxy(&host).await;
    uses_other_plugins(&host).await;
}

/// Starts the built plugin on a device with a serial port and with other plugins, which the tool's own tests do not
/// have.
async fn start_beside_others(author: &Author, port: &str) -> RunningHost {
    let component = author.path("rails/rails.wasm");
    let manifest = Manifest::from_wasm(&fs::read(&component).unwrap()).unwrap();
    let needs = manifest.capabilities.iter();
    let grants: Vec<String> = needs.map(|need| need.name.to_string()).collect();
    let policy = format!(
        "[plugins.rails]\ngrants = {grants:?}\nserial = [{port:?}]\n\
         actions = [\"acme-rails/set\", \"acme-rails/list\", \"gone/set\"]\n\
         [plugins.acme-rails]\ngrants = [\"store\"]\n[plugins.led-blink]\ngrants = [\"led\"]\n\
         [plugins.proxy-redirector]\ngrants = [\"files\", \"units\"]\nunits = [\"redsocks-conf.target\", \
         \"platform-proxy-config.service\", \"redsocks.service\"]\n\
         files = [{{ host = \"mnt/boot/system-proxy\", guest = \"/system-proxy\", write = true, create = true }}]\n"
    );
    let device = Host::new()
        .plugin(component)
        .plugin(guest("acme_rails"))
        .plugin(guest("led_blink"))
        .plugin(guest("proxy_redirector"))
        .policy(policy)
        .led("ACT", 7, 255);
    EmbeddedHost::new(device)
        // The tool has compiled the plugin a moment ago.
        .code_cache(compiled_code())
        .start()
        .await
}

async fn uses_a_port_under_the_locks(host: &RunningHost, port: &PseudoTerminal) {
    let path = format!("/v3/measure?port={}", port.name());
    let meter = async {
        assert_eq!(port.read(5).await, b"READ\n");
        assert!(host.update_locks_are_held());
        host.led_becomes("ACT", 255).await;
        port.write(b"21.5\n");
    };
    let (answer, ()) = tokio::join!(host.post(&path, json!({})), meter);
    let expected = json!({ "answer": "21.5\n", "more": 0, "refused": ["Conflict", "Internal"] });
    assert_eq!(answer.json(), expected);
    assert!(!host.update_locks_are_held());
    assert_eq!(host.update_locks_taken(), (1, 0));
    host.led_becomes("ACT", 7).await;

    host.hold_update_lock("the press is running");
    let answer = host.post(&path, json!({})).await;
    assert_eq!(answer.status, 423, "{}", answer.text());
    assert_eq!(answer.json()["message"], "the press is running");
}

async fn uses_the_proxy(host: &RunningHost) {
    let answer = host.post("/v3/proxy", json!({})).await;
    let expected = json!({
        "before": "direct",
        "written": [
            {
                "proxy": { "kind": "socks5", "address": "10.0.0.9", "port": 1080, "login": "ada", "password": "p" },
                "dns": { "address": "10.0.0.53", "port": 53 },
            },
            ["10.0.0.0/8", "192.0.2.7"],
        ],
        "refused": "BadRequest: `odd` is neither an address nor a subnet",
        "after": "direct",
    });
    assert_eq!(answer.json(), expected, "{}", answer.text());
}

async fn uses_other_plugins(host: &RunningHost) {
    // From now on the clock jumps ahead whenever all tasks are idle.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let answer = host.post("/v3/others", json!({})).await;
    let rails = r#"[{"name":"3v3","on":false},{"name":"5v","on":true}]"#;
    let expected = json!({
        "by": "rails",
        "rails": rails,
        "refused": ["Conflict", "Internal", "Unavailable"],
    });
    assert_eq!(answer.json(), expected);
    assert!(begun.elapsed().as_secs() >= 15);
    host.called("led-blink", 1).await;
}

#[tokio::test]
async fn a_plugin_in_javascript_uses_the_device() {
    let refused = "RangeError RangeError RangeError RangeError";
    check(
        "javascript",
        "src/plugin.js",
        |capability| capability.javascript,
        refused,
    )
    .await;
}

#[tokio::test]
async fn a_plugin_in_python_uses_the_device() {
    check(
        "python",
        "src/plugin.py",
        |capability| capability.python,
        "ValueError ValueError",
    )
    .await;
}
