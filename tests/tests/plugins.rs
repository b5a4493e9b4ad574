//! Plugins on a running supervisor: the answers of the first ones, and what happens when files, policies and components
//! change or fail while it runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tests::{Builder, Supervisor, distribution, guest, never_compiled, until};

/// How long a device identifies itself (docs/spec/device.md#v1-blink).
const WINDOW: Duration = Duration::from_secs(15);
/// The value of LEDs before they are used: no pattern has it, so seeing it again means that the LED was released.
const BEFORE: u32 = 7;

/// The grants of the stock plugins; their files are those of the layout.
const STOCK: &str = r#"
    [plugins.device-info]
    grants = ["device"]
    [plugins.led-blink]
    grants = ["led"]
"#;

/// Those grants, and the ones of third-party plugins, whose files the policy pins.
fn policy() -> String {
    let mut policy = STOCK.to_owned();
    for (name, file, gets) in [
        (
            "greeter",
            "greeter",
            "grants = [\"device\"]\nroutes = [\"/v3/greet/*\"]",
        ),
        (
            "board-leds",
            "board_leds",
            "grants = [\"led\"]\nprovides = [\"identify\"]\nboards = [\"acme-*\"]",
        ),
        (
            "led-guests",
            "led_guests",
            "grants = [\"led\"]\nroutes = [\"/v3/led-guests/*\"]",
        ),
        (
            "tank-gauge",
            "tank_gauge",
            "grants = [\"metrics\", \"report\"]\nroutes = [\"/v3/tanks/*\"]",
        ),
        (
            "ticker",
            "ticker",
            "routes = [\"/v3/ticks\", \"/v3/shout\"]",
        ),
    ] {
        let digest = digest(&guest(file));
        policy += &format!("[plugins.{name}]\nsha256 = [\"{digest}\"]\n{gets}\n");
    }
    policy
}

/// SHA-256 of a file, in hexadecimal.
fn digest(file: &Path) -> String {
    hex::encode(Sha256::digest(fs::read(file).unwrap()))
}

/// A supervisor with plugins chosen by the test.
struct Device {
    supervisor: Supervisor,
    folder: tempfile::TempDir,
}

impl Device {
    async fn with(plugins: &[PathBuf]) -> Self {
        Self::on_board("unknown", plugins, "").await
    }

    async fn on_board(device_type: &str, plugins: &[PathBuf], configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("plugins")).unwrap();
        for plugin in plugins {
            install(plugin, &folder.path().join("plugins"));
        }
        fs::write(folder.path().join("policy.toml"), policy()).unwrap();
        let board = json!({ "slug": device_type, "arch": "aarch64" });
        fs::write(folder.path().join("device-type.json"), board.to_string()).unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let builder: Builder = Supervisor::on_wasm()
            .argument("--plugin-dir")
            .argument(path("plugins"))
            .argument("--policy")
            .argument(path("policy.toml"))
            .argument("--device-type")
            .argument(path("device-type.json"))
            .configuration(configuration);
        Device {
            supervisor: builder.start().await,
            folder,
        }
    }

    fn plugins(&self) -> PathBuf {
        self.folder.path().join("plugins")
    }

    fn led_file(&self, name: &str) -> PathBuf {
        let class = self.supervisor.host_root().join("sys/class/leds");
        class.join(name).join("brightness")
    }

    /// Adds an LED like one of the kernel's LED class.
    fn add_led(&self, name: &str, max: u32) {
        let file = self.led_file(name);
        let folder = file.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("max_brightness"), format!("{max}\n")).unwrap();
        fs::write(folder.join("trigger"), "[none] timer heartbeat\n").unwrap();
        fs::write(file, format!("{BEFORE}\n")).unwrap();
    }

    fn led(&self, name: &str) -> u32 {
        let text = fs::read_to_string(self.led_file(name)).unwrap();
        // The file is empty for a moment between its truncation and the write.
        text.trim().parse().unwrap_or(u32::MAX)
    }

    async fn until_led_shows(&self, name: &str, brightness: u32) {
        until(&format!("the LED {name} to show {brightness}"), || async {
            let shown = self.led(name);
            if shown == brightness {
                Ok(())
            } else {
                Err(shown)
            }
        })
        .await;
    }

    async fn blink(&self) {
        let answer = self.supervisor.post("/v1/blink", &json!({})).await;
        assert_eq!((answer.status, answer.text.as_str()), (200, ""));
    }

    async fn report(&self, plugin: &str) -> Value {
        let all = self.supervisor.json("/v3/plugins").await;
        let plugins = all["plugins"].as_array().unwrap();
        let found = plugins.iter().find(|report| report["name"] == plugin);
        found.cloned().unwrap_or(Value::Null)
    }

    async fn until_status(&self, path: &str, status: u16) {
        until(&format!("{path} to answer {status}"), || async {
            let answer = self.supervisor.get(path).await;
            if answer.status == status {
                Ok(())
            } else {
                Err(answer)
            }
        })
        .await;
    }
}

fn stock(name: &str) -> PathBuf {
    distribution().join("plugins").join(format!("{name}.wasm"))
}

/// Copies it next to its place and renames it, so that the file is always complete.
fn install(component: &Path, folder: &Path) {
    let name = component.file_name().unwrap();
    let beside = folder.join(name).with_extension("part");
    fs::copy(component, &beside).unwrap();
    fs::rename(beside, folder.join(name)).unwrap();
}

#[tokio::test]
async fn every_plugin_of_the_layout_runs_with_the_policy_that_is_shipped() {
    let supervisor = Supervisor::on_wasm().start().await;
    let report = supervisor.json("/v3/plugins").await;
    let plugins = report["plugins"].as_array().unwrap();
    let shipped = fs::read_dir(distribution().join("plugins"))
        .unwrap()
        .count();
    assert_eq!(plugins.len(), shipped);
    for plugin in plugins {
        // Some are for other boards than this machine.
        let states = ["running", "other-board"];
        let state = plugin["state"].as_str().unwrap();
        assert!(states.contains(&state), "{plugin}");
        assert!(plugin["refused"].is_null(), "{plugin}");
    }
    let info = supervisor.get("/v2/local/device-info").await;
    assert_eq!(info.status, 200);
}

/// With a new plugin, and a compiler that never ends.
#[tokio::test]
async fn a_plugin_that_compiles_for_ever_delays_no_other_and_is_listed_as_loading() {
    let layout = tempfile::tempdir().unwrap();
    let copied = Command::new("cp")
        .args(["--recursive", "--no-target-directory"])
        .arg(distribution())
        .arg(layout.path())
        .status();
    assert!(copied.unwrap().success());
    let compiler = layout.path().join("bin/supervisor-compile");
    fs::remove_file(&compiler).unwrap();
    let text = format!(
        "#!/bin/sh\ntest -e {}/hangs && exec sleep 600\nexec {} \"$@\"\n",
        layout.path().display(),
        distribution().join("bin/supervisor-compile").display()
    );
    fs::write(&compiler, text).unwrap();
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    let mut device = Supervisor::on_wasm()
        .program(layout.path().join("bin/supervisor"))
        .before_its_plugins()
        .start()
        .await;
    let state = async |device: &Supervisor, name: &str| {
        let report = device.json("/v3/plugins").await;
        let plugins = report["plugins"].as_array().unwrap().iter();
        let mut plugins = plugins.filter(|plugin| plugin["name"] == name);
        plugins.next().map(|plugin| plugin["state"].clone())
    };
    until("the plugins of the layout to be compiled", || async {
        let report = device.json("/v3/plugins").await;
        if report.to_string().contains("\"loading\"") {
            Err(report)
        } else {
            Ok(())
        }
    })
    .await;
    device.terminate().await;

    fs::write(layout.path().join("hangs"), "").unwrap();
    let greeter = layout.path().join("plugins/00-greeter.wasm");
    // Tests share a cache, and the end of this one compiles the file.
    let renamed = rename_manifest(&fs::read(guest("greeter")).unwrap(), "signs", "sings");
    fs::write(&greeter, never_compiled(&renamed)).unwrap();
    let policy = layout.path().join("policy.toml");
    let lines = format!(
        "[plugins.greeter]\nsha256 = [\"{}\"]\ngrants = [\"device\"]\nroutes = [\"/v3/greet/*\"]\n",
        digest(&greeter)
    );
    fs::write(&policy, fs::read_to_string(&policy).unwrap() + &lines).unwrap();
    device.start_again().await;
    // Plugins before it in the alphabet and after it.
    for path in [
        "/v2/local/device-info",
        "/v2/device/name",
        "/v1/device/host-config",
    ] {
        let answer = device.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    assert_eq!(device.get("/v3/nobody").await.status, 404);
    assert_eq!(state(&device, "greeter").await, Some(json!("loading")));

    let greeted = device.get("/v3/greet/Ada?greeting=Hi").await;
    assert_eq!(greeted.status, 503);
    let message = greeted.failure().unwrap();
    assert_eq!(message, "plugin `greeter` is being loaded");

    // Another compiler compiles it with the next start.
    fs::remove_file(layout.path().join("hangs")).unwrap();
    device.terminate().await;
    device.start_again().await;
    until("the greeter to be compiled", || async {
        let greeted = device.get("/v3/greet/Ada?greeting=Hi").await;
        if greeted.status == 200 {
            Ok(())
        } else {
            Err(greeted)
        }
    })
    .await;
}

#[tokio::test]
async fn the_report_describes_each_plugin_its_rights_and_its_state() {
    let device = Device::with(&[stock("device_info"), guest("led_guests")]).await;
    device.add_led("ACT", 255);
    device.supervisor.get("/v2/device/name").await;
    device.supervisor.get("/v2/device/name").await;
    let trap = "/v3/led-guests/ACT/trap";
    let mut events = device.supervisor.read_events().await;
    assert_eq!(device.supervisor.post(trap, &json!({})).await.status, 500);
    let event = events.until("plugin-fault", |_| true).await;
    let fault = &event.last().unwrap().data;
    assert_eq!(fault["plugin"], "led-guests");
    assert!(
        fault["message"].as_str().unwrap().contains("failed"),
        "{fault}"
    );

    let mut report = device.report("device-info").await;
    let file = report["file"].take();
    assert!(file.as_str().unwrap().ends_with("device_info.wasm"));
    assert_eq!(
        report,
        json!({
            "name": "device-info", "file": null, "version": env!("CARGO_PKG_VERSION"), "interface": "1.4.0",
            "digest": digest(&stock("device_info")), "state": "running",
            "routes": [
                {"method": "GET", "path": "/v2/local/device-info"},
                {"method": "GET", "path": "/v2/device/name"},
            ],
            "provides": [], "events": [], "actions": [], "grants": ["device"],
            "limits": { "memory_mib": 16, "cpu_ms": 1000, "wall_ms": 10000, "body_kib": 1024, "concurrency": 8 },
            "fields": [], "calls": 2, "failures": 0,
        })
    );
    let report = device.report("led-guests").await;
    assert_eq!(
        (&report["digest"], &report["grants"]),
        (&json!(digest(&guest("led_guests"))), &json!(["led"]))
    );
    assert_eq!(
        (&report["calls"], &report["failures"]),
        (&json!(1), &json!(1))
    );
    let last = report["lastError"].as_str().unwrap();
    let panic =
        "plugin `led-guests` panicked: with an LED in its hands (tests/led-guests/src/lib.rs:";
    assert!(last.starts_with(panic), "{last}");
}

#[tokio::test]
async fn the_first_plugins_answer_from_what_the_host_says_of_its_board() {
    let device = Device::on_board("raspberrypi4-64", &[stock("device_info")], "").await;
    let info = json!({ "arch": "aarch64", "deviceType": "raspberrypi4-64" });
    let answer = device.supervisor.get("/v2/local/device-info").await;
    assert_eq!(answer.status, 200);
    let kind = answer.content_type.as_deref();
    assert_eq!(kind, Some("application/json; charset=utf-8"));
    assert_eq!(answer.json(), json!({ "status": "success", "info": info }));
    let name = device.supervisor.json("/v2/device/name").await;
    assert_eq!(name, json!({ "status": "success", "deviceName": "local" }));

    let wrong = device.supervisor.post("/v2/device/name", &json!({})).await;
    assert_eq!(
        (wrong.status, wrong.allow.as_deref()),
        (405, Some("GET, HEAD"))
    );
    let request = device
        .supervisor
        .request_without_key("GET", "/v2/device/name");
    assert_eq!(device.supervisor.send(request).await.status, 401);
}

#[tokio::test]
async fn metrics_of_a_plugin_are_shown_until_its_grant_is_removed() {
    let device = Device::with(&[guest("tank_gauge")]).await;
    for (tank, level) in [("north", 0.25), ("a%22b%5Cc", 1.0), ("north", 0.5)] {
        let path = format!("/v3/tanks/{tank}");
        let answer = device
            .supervisor
            .post(&path, &json!({ "level": level }))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let family = "# HELP plugin_tank_gauge__level Reported by the plugin tank-gauge.\n\
                  # TYPE plugin_tank_gauge__level gauge\n\
                  plugin_tank_gauge__level{tank=\"a\\\"b\\\\c\"} 1.0\n\
                  plugin_tank_gauge__level{tank=\"north\"} 0.5\n\
                  # HELP plugin_tank_gauge__readings_total Reported by the plugin tank-gauge.\n\
                  # TYPE plugin_tank_gauge__readings_total counter\n\
                  plugin_tank_gauge__readings_total{tank=\"a\\\"b\\\\c\"} 1\n\
                  plugin_tank_gauge__readings_total{tank=\"north\"} 2\n";
    let page = device.supervisor.get("/metrics").await.text;
    assert!(page.contains(family), "{page}");

    fs::write(device.folder.path().join("policy.toml"), STOCK).unwrap();
    until("what it reported to go with its grant", || async {
        let page = device.supervisor.get("/metrics").await.text;
        if page.contains("plugin_tank_gauge__") {
            Err(page)
        } else {
            Ok(())
        }
    })
    .await;
}

#[tokio::test]
async fn a_third_partys_endpoint_reads_path_query_and_body_and_tells_what_is_wrong() {
    let device = Device::with(&[guest("greeter")]).await;
    let answer = device
        .supervisor
        .json("/v3/greet/Ada%20L?greeting=Salut")
        .await;
    assert_eq!(answer, json!({ "greeting": "Salut, Ada L! I am local." }));
    let hi = json!({ "greeting": "Hi" });
    let answer = device.supervisor.post("/v3/greet/Ada", &hi).await;
    assert_eq!(answer.json(), json!({ "greeting": "Hi, Ada! I am local." }));

    let missing = device.supervisor.get("/v3/greet/Ada").await;
    assert_eq!(missing.status, 400);
    let message = missing.failure().unwrap();
    assert_eq!(message, "query parameter `greeting` is missing");
    let large = json!({ "greeting": "x".repeat(2 << 20) });
    assert_eq!(
        device.supervisor.post("/v3/greet/Ada", &large).await.status,
        413
    );
}

#[tokio::test]
async fn a_stream_arrives_while_it_is_written_and_ends_when_its_reader_leaves() {
    let device = Device::with(&[guest("ticker")]).await;
    let request = device.supervisor.request("GET", "/v3/ticks?every_ms=10");
    let mut body = request.send().await.unwrap().bytes_stream();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("tick 5\n") {
        seen.extend_from_slice(&body.next().await.unwrap().unwrap());
    }
    drop(body);
    // Eight calls at a time are allowed: if the streams of disconnected readers were still there, the last ones would
    // not be answered.
    for _ in 0..20 {
        let request = device.supervisor.request("GET", "/v3/ticks?every_ms=10");
        let mut body = request.send().await.unwrap().bytes_stream();
        assert!(body.next().await.unwrap().is_ok());
    }
    let all = device.supervisor.get("/v3/ticks?every_ms=1&count=3").await;
    assert_eq!(all.text, "tick 1\ntick 2\ntick 3\n");
}

#[tokio::test]
async fn the_led_blinks_for_the_window_a_second_call_extends_it_and_the_led_is_given_back() {
    let device = Device::with(&[stock("led_blink")]).await;
    device.add_led("ACT", 255);
    device.blink().await;
    device.until_led_shows("ACT", 255).await;
    device.until_led_shows("ACT", 0).await;
    device.until_led_shows("ACT", 255).await;
    device.blink().await;
    let second = Instant::now();
    device.until_led_shows("ACT", BEFORE).await;
    let lasted = second.elapsed();
    assert!(lasted + Duration::from_secs(1) > WINDOW, "{lasted:?}");
    let report = device.report("led-blink").await;
    assert_eq!(
        (&report["calls"], &report["failures"]),
        (&json!(1), &json!(0))
    );
}

#[tokio::test]
async fn blinking_a_device_without_an_led_or_without_a_plugin_is_a_success() {
    for plugins in [vec![stock("led_blink")], vec![]] {
        let device = Device::with(&plugins).await;
        device.blink().await;
        device.blink().await;
    }
}

#[tokio::test]
async fn an_led_is_given_back_after_a_trap_and_after_a_time_out() {
    let device = Device::with(&[guest("led_guests")]).await;
    device.add_led("ACT", 255);
    for (fault, status) in [("trap", 500), ("wait", 504), ("spin", 504)] {
        let path = format!("/v3/led-guests/ACT/{fault}");
        let body = json!({});
        let (answer, ()) = tokio::join!(device.supervisor.post(&path, &body), async {
            if fault != "trap" {
                device.until_led_shows("ACT", 255).await;
            }
        });
        assert_eq!(answer.status, status, "{fault}: {answer:?}");
        assert!(
            answer.failure().unwrap().contains("led-guests"),
            "{answer:?}"
        );
        device.until_led_shows("ACT", BEFORE).await;
    }
    let log = device.supervisor.log();
    assert!(
        log.contains("with an LED in its hands"),
        "the panic is in the log"
    );
    let trace = |line: &str| line.contains("led-guests") && line.contains("wasm trap");
    assert!(log.lines().any(trace), "the plugin and the trap: {log}");
    assert!(log.contains(" - led_guests.wasm!"), "the trace: {log}");
}

#[tokio::test]
async fn an_led_is_given_back_at_the_start_after_a_kill() {
    let mut device = Device::with(&[stock("led_blink")]).await;
    device.add_led("ACT", 255);
    device.blink().await;
    device.until_led_shows("ACT", 255).await;
    device.supervisor.kill().await;
    assert_ne!(device.led("ACT"), BEFORE);
    device.supervisor.start_again().await;
    device.until_led_shows("ACT", BEFORE).await;
}

#[tokio::test]
async fn the_configuration_of_a_plugin_reaches_it() {
    let configuration = "[plugins.led-blink]\nled = \"board:green:status\"";
    let plugins = [stock("led_blink")];
    let device = Device::on_board("unknown", &plugins, configuration).await;
    device.add_led("ACT", 255);
    device.add_led("board:green:status", 31);
    device.blink().await;
    device.until_led_shows("board:green:status", 31).await;
    assert_eq!(device.led("ACT"), BEFORE);
}

#[tokio::test]
async fn a_boards_plugin_takes_the_place_of_the_stock_one_on_its_boards_only() {
    let plugins = [stock("led_blink"), guest("board_leds")];
    for (device_type, leds) in [
        (
            "acme-gateway2",
            ["acme:green:left", "acme:green:right"].as_slice(),
        ),
        ("raspberrypi4-64", ["ACT"].as_slice()),
    ] {
        let device = Device::on_board(device_type, &plugins, "").await;
        let all = ["ACT", "acme:green:left", "acme:green:right"];
        for led in all {
            device.add_led(led, 1);
        }
        device.blink().await;
        for led in leds {
            device.until_led_shows(led, 1).await;
            device.until_led_shows(led, 0).await;
        }
        for other in all.iter().filter(|led| !leds.contains(led)) {
            assert_eq!(device.led(other), BEFORE, "{device_type}: {other}");
        }
    }
}

#[tokio::test]
async fn a_plugin_serves_from_when_its_file_is_added_until_it_is_removed() {
    let device = Device::with(&[]).await;
    let path = "/v3/greet/Ada?greeting=Hi";
    assert_eq!(device.supervisor.get(path).await.status, 404);
    install(&guest("greeter"), &device.plugins());
    device.until_status(path, 200).await;
    fs::remove_file(device.plugins().join("greeter.wasm")).unwrap();
    device.until_status(path, 404).await;
}

#[tokio::test]
async fn a_file_that_is_no_plugin_leaves_the_one_before_it_serving() {
    let device = Device::with(&[guest("greeter")]).await;
    let path = "/v3/greet/Ada?greeting=Hi";
    assert_eq!(device.supervisor.get(path).await.status, 200);
    fs::write(device.plugins().join("greeter.wasm"), b"not a component").unwrap();
    until("the refusal to be reported", || async {
        let report = device.report("greeter").await;
        if report["refused"].is_string() {
            Ok(())
        } else {
            Err(report)
        }
    })
    .await;
    assert_eq!(device.supervisor.get(path).await.status, 200);
    install(&guest("greeter"), &device.plugins());
    until("the refusal to be gone", || async {
        let report = device.report("greeter").await;
        if report["refused"].is_null() {
            Ok(())
        } else {
            Err(report)
        }
    })
    .await;
}

#[tokio::test]
async fn a_changed_policy_takes_effect_without_a_restart() {
    let device = Device::with(&[guest("greeter"), stock("device_info")]).await;
    let path = "/v3/greet/Ada?greeting=Hi";
    assert_eq!(device.supervisor.get(path).await.status, 200);

    let policy = device.folder.path().join("policy.toml");
    let pin = format!("sha256 = [\"{}\"]", digest(&guest("greeter")));
    let withdrawn = format!(
        "[plugins.device-info]\ngrants = [\"device\"]\n[plugins.greeter]\n{pin}\nroutes = [\"/v3/greet/*\"]\n"
    );
    fs::write(&policy, withdrawn).unwrap();
    until("the grant to be withdrawn", || async {
        let report = device.report("greeter").await;
        if report["state"] == "refused" {
            Ok(())
        } else {
            Err(report)
        }
    })
    .await;
    assert_eq!(device.supervisor.get(path).await.status, 404);
    let refused = device.report("greeter").await["refused"].clone();
    let line = "`[plugins.greeter]` the line `grants = [\"device\"]`";
    assert!(refused.as_str().unwrap().contains(line), "{refused}");
    let answer = device.supervisor.get("/v2/device/name").await;
    assert_eq!(answer.status, 200, "another plugin was disturbed");

    fs::write(&policy, self::policy()).unwrap();
    device.until_status(path, 200).await;
}

/// A plugin without a line in the policy attempts to use the stock one's name, its place and its routes.
#[tokio::test]
async fn a_file_that_nobody_trusts_takes_no_stock_plugins_place() {
    let device = Device::with(&[stock("device_info")]).await;
    // The greeter claims to be the plugin `tags`, which has no file here.
    let greeter = fs::read(guest("greeter")).unwrap();
    let claims = rename_manifest(&greeter, "\"greeter\"", "\"tags\"");
    fs::write(device.folder.path().join("00-tags.wasm"), claims).unwrap();
    install(
        &device.folder.path().join("00-tags.wasm"),
        &device.plugins(),
    );
    // The policy pins this one.
    install(&guest("ticker"), &device.plugins());
    until("both to be looked at", || async {
        let (tags, ticker) = (device.report("tags").await, device.report("ticker").await);
        if tags["state"] == "refused" && ticker["state"] == "running" {
            Ok(())
        } else {
            Err((tags, ticker))
        }
    })
    .await;
    let refused = device.report("tags").await["refused"].clone();
    let expected = "`tags` is a stock plugin, and this is another file";
    assert!(refused.as_str().unwrap().contains(expected), "{refused}");
    let path = "/v3/greet/Ada?greeting=Hi";
    assert_eq!(device.supervisor.get(path).await.status, 404);

    // A policy cannot assign the routes of stock plugins.
    let policy = device.folder.path().join("policy.toml");
    fs::write(&policy, self::policy().replace("/v3/ticks", "/v2/device/*")).unwrap();
    until("the policy to be refused", || async {
        let log = device.supervisor.log();
        if log.contains("the route `/v2/device/*` reaches below `/v1` or `/v2`") {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
    assert_eq!(device.supervisor.get("/v2/device/name").await.status, 200);
}

/// In the way in which an owner installs a third party's plugin.
#[tokio::test]
async fn the_lines_of_trust_are_all_that_a_plugin_needs() {
    let device = Device::with(&[]).await;
    let policy = device.folder.path().join("policy.toml");
    fs::write(&policy, STOCK).unwrap();
    install(&guest("greeter"), &device.plugins());
    until("it to be refused", || async {
        let report = device.report("greeter").await;
        match report["refused"].as_str() {
            Some(refused) if refused.contains("pins no file of a plugin `greeter`") => Ok(()),
            _ => Err(report),
        }
    })
    .await;
    let (file, at) = (guest("greeter"), policy.display().to_string());
    let words = [
        "plugins",
        "trust",
        file.to_str().unwrap(),
        "--policy",
        at.as_str(),
    ];
    let shown = device.supervisor.subcommand(&words);
    assert!(shown.status.success(), "{shown:?}");
    assert!(
        shown.stdout.starts_with("# The plugin `greeter`"),
        "{}",
        shown.stdout
    );
    let mut grant = words;
    grant[1] = "grant";
    let granted = device.supervisor.subcommand(&grant);
    assert!(granted.status.success(), "{granted:?}");
    let added = fs::read_to_string(&policy).unwrap();
    assert!(
        added.starts_with(STOCK) && added.ends_with(&shown.stdout),
        "{added}"
    );
    device.until_status("/v3/greet/Ada?greeting=Hi", 200).await;
    let shown = device.supervisor.subcommand(&words);
    assert!(
        shown
            .stdout
            .ends_with("# [plugins.greeter] of the policy grants all of this already.\n"),
        "{}",
        shown.stdout
    );
}

#[tokio::test]
async fn developer_mode_is_seen_in_the_list_and_in_the_log() {
    let plugins = [guest("greeter"), stock("device_info")];
    let device = Device::on_board("unknown", &plugins, "allow_unpinned = true").await;
    let answer = device.supervisor.json("/v3/plugins").await;
    assert_eq!(answer["allowUnpinned"], true);
    assert!(device.report("greeter").await["unpinned"].is_null());
    // From now on the policy pins another file to the name, which does not matter here.
    let other = policy().replace(&digest(&guest("greeter")), &"0".repeat(64));
    fs::write(device.folder.path().join("policy.toml"), other).unwrap();
    until("it to be unpinned", || async {
        let report = device.report("greeter").await;
        if report["unpinned"] == true && report["state"] == "running" {
            Ok(())
        } else {
            Err(report)
        }
    })
    .await;
    let log = device.supervisor.log();
    for line in [
        "developer mode (--allow-unpinned): any file in a plugin folder",
        "developer mode: plugin `greeter`",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
    let answer = Device::with(&[]).await.supervisor.json("/v3/plugins").await;
    assert!(answer["allowUnpinned"].is_null(), "{answer}");
}

/// Returns the component with another text in its manifest, padded with spaces, which TOML ignores.
fn rename_manifest(component: &[u8], from: &str, to: &str) -> Vec<u8> {
    let find = |bytes: &[u8], text: &str| {
        let mut windows = bytes.windows(text.len());
        windows
            .position(|window| window == text.as_bytes())
            .unwrap()
    };
    let mut copy = component.to_vec();
    let section = find(&copy, "platform:manifest");
    let at = section + find(&copy[section..], from);
    let to = format!("{to:width$}", width = from.len());
    copy[at..at + from.len()].copy_from_slice(to.as_bytes());
    copy
}

#[test]
fn a_component_imports_only_what_it_uses() {
    let table: [(PathBuf, &[&str]); 7] = [
        (stock("device_info"), &["device", "types"]),
        (
            stock("led_blink"),
            &["config", "identify-window", "led", "log", "timer"],
        ),
        (
            stock("host_config"),
            &[
                "device",
                "host-name",
                "log",
                "proxy-redirector",
                "proxy-types",
                "types",
                "update-lock",
            ],
        ),
        (guest("greeter"), &["device", "types"]),
        (guest("ticker"), &["timer", "types"]),
        (
            guest("board_leds"),
            &["config", "identify-window", "led", "timer"],
        ),
        (guest("led_guests"), &["led", "timer", "types"]),
    ];
    for (file, expected) in table {
        let imports = imports(&fs::read(&file).unwrap());
        let ours: Vec<_> = imports
            .iter()
            .filter_map(|name| {
                let name = name.strip_prefix("platform:supervisor/")?;
                Some(name.split_once('@')?.0)
            })
            .collect();
        assert_eq!(ours, expected, "{}", file.display());
        let reach = [
            "wasi:clocks",
            "wasi:filesystem",
            "wasi:sockets",
            "wasi:http",
            "wasi:random/random",
        ];
        let others = imports
            .iter()
            .find(|name| reach.iter().any(|reach| name.starts_with(reach)));
        assert_eq!(others, None, "{}", file.display());
    }
}

/// Returns the imports of a component, sorted.
fn imports(component: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0;
    for payload in wasmparser::Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            wasmparser::Payload::ModuleSection { .. }
            | wasmparser::Payload::ComponentSection { .. } => {
                depth += 1;
            }
            wasmparser::Payload::End(_) => depth -= 1,
            wasmparser::Payload::ComponentImportSection(section) if depth == 0 => {
                names.extend(
                    section
                        .into_iter()
                        .map(|import| import.unwrap().name.name.to_owned()),
                );
            }
            _ => {}
        }
    }
    names.sort();
    names
}
