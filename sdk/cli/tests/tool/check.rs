//! `check` and `inspect`: problems that a device would refuse, found earlier.

use std::fs;
use std::process::Command;

use tests::{guest, guest_plugin};

use crate::author::{Author, TOOL};

/// Returns the component that does what its path says, as a plugin with these keys in its manifest.
fn plugin(keys: &str) -> Vec<u8> {
    let component = fs::read(guest("plugin_guests")).unwrap();
    let keys = format!("name = \"mine\"\nversion = \"1.0.0\"\n{keys}\n");
    guest_plugin(&component, &keys, "")
}

/// Returns the lines of a manifest with a route.
fn route(path: &str) -> String {
    format!("routes = [{{ method = \"GET\", path = \"{path}\" }}]")
}

#[test]
fn a_plugin_that_a_device_would_take_passes_and_gets_the_lines_for_its_policy() {
    let author = Author::new();
    let greeter = guest("greeter");
    let checked = author
        .run(&format!("check {}", greeter.display()))
        .succeeds();
    for line in [
        "[plugins.greeter]",
        "sha256 = [",
        "grants = [\"device\"]",
        " of native code",
        " core instances of 64, 1 memory of 4, ",
    ] {
        assert!(checked.out.contains(line), "{}", checked.out);
    }
    let json = author
        .run(&format!("check {} --json", greeter.display()))
        .succeeds()
        .json();
    let code = &json["native_code"];
    assert!(code["core_instances"].as_u64() > Some(1), "{code}");
    // In bytes: the memory of a program in Rust begins with at least one page.
    assert!(code["memory_at_start"].as_u64() >= Some(65_536), "{code}");
    // With these lines in its policy the component passes too.
    let lines = checked.out.split("these lines:").nth(1).unwrap();
    author.write("policy.toml", lines);
    author
        .run(&format!("check {} --policy policy.toml", greeter.display()))
        .succeeds();
}

#[test]
fn check_reports_what_a_device_would_refuse_in_the_devices_words() {
    let author = Author::new();
    let greeter = guest("greeter").display().to_string();
    author.write("module.wasm", "\0asm\u{1}\0\0\0");
    author.write("text.wasm", "hello");
    author.write("empty.toml", "");
    fs::write(author.path("mine.wasm"), plugin(&route("/v2/mine"))).unwrap();
    fs::write(author.path("any.wasm"), plugin(&route("/:any/mine"))).unwrap();
    fs::write(author.path("core.wasm"), plugin(&route("/v3/plugins"))).unwrap();
    for (words, expected) in [
        (
            "check module.wasm".to_owned(),
            "it is a core module and not a component",
        ),
        ("check text.wasm".to_owned(), "it is not WebAssembly"),
        ("check none.wasm".to_owned(), "cannot read `none.wasm`"),
        (
            format!("check {greeter} --policy empty.toml"),
            "the policy `empty.toml` pins no file of a plugin `greeter`",
        ),
        (
            format!(
                "check {} --device-type intel-nuc",
                guest("board_leds").display()
            ),
            "and not for `intel-nuc`",
        ),
        (
            "check mine.wasm".to_owned(),
            "plugin `mine` answers `/v2/mine`, and only stock plugins answer below `/v1` and `/v2`",
        ),
        (
            "check any.wasm".to_owned(),
            "plugin `mine` answers `/:any/mine`, and only stock plugins answer below `/v1` and `/v2`",
        ),
        (
            "check core.wasm".to_owned(),
            "the route `GET /v3/plugins` is the supervisor's own",
        ),
    ] {
        let checked = author.run(&words).fails();
        assert!(checked.out.contains(expected), "{words}: {}", checked.out);
        let json = author.run(&format!("{words} --json")).fails().json();
        assert_eq!(json["ok"], false);
        assert!(
            json["failed"][0].as_str().unwrap().contains(expected),
            "{json}"
        );
    }
}

/// Asserts that `check` with these words finds exactly this, in this order, and returns what it prints.
#[track_caller]
fn finds(author: &Author, folder: &str, words: &str, expected: &[&str]) -> String {
    let json = author.run_in(folder, &format!("{words} --json")).fails();
    let json = json.json();
    let failed = json["failed"].as_array().unwrap();
    assert_eq!(failed.len(), expected.len(), "{json:#}");
    for (failed, expected) in failed.iter().zip(expected) {
        assert!(failed.as_str().unwrap().contains(expected), "{failed}");
    }
    let shown = author.run_in(folder, words).fails().out;
    let lines = shown.lines().filter(|line| line.starts_with("fails  "));
    assert_eq!(lines.count(), expected.len(), "{shown}");
    shown
}

#[test]
fn all_that_a_policy_lacks_is_listed_at_once_with_one_section_that_suffices() {
    let author = Author::new();
    let greeter = guest("greeter").display().to_string();
    let words = format!("check {greeter} --policy policy.toml");
    let pins = "the line `sha256 = [";
    let routes = "the line `routes = [";
    let grants = "the line `grants = [\"device\"]`";
    author.write("policy.toml", "");
    finds(&author, "", &words, &[pins, routes, grants]);
    let others = "0".repeat(64);
    author.write(
        "policy.toml",
        &format!("[plugins.greeter]\nsha256 = [\"{others}\"]\ngrants = [\"store\"]\n"),
    );
    let expected = [
        "pins other files of the plugin",
        routes,
        "`grants = [\"device\", \"store\"]`",
    ];
    let shown = finds(&author, "", &words, &expected);
    let lines = shown.split("these lines:").nth(1).unwrap();
    assert!(
        lines.contains(&others),
        "what the section grants is kept: {lines}"
    );
    author.write("policy.toml", lines);
    author.run(&words).succeeds();
}

#[test]
fn all_that_is_wrong_with_a_component_is_listed_at_once() {
    let author = Author::new();
    let instances = "(core instance (instantiate $m))".repeat(5);
    let imports = r#"(import "wasi:sockets/tcp@0.2.6" (instance (export "f" (func))))
        (import "platform:supervisor/store@1.0.0" (instance (export "f" (func))))
        (import "wasi:clocks/wall-clock@0.2.6" (instance (export "t" (type (sub resource)))))"#;
    let text = format!("(component {imports} (core module $m (memory 1)) {instances})");
    let mut wasm = wat::parse_str(text).unwrap();
    let routes = ["/v3/plugins", "/ping", "/v2/mine"]
        .map(|path| format!("{{ method = \"GET\", path = \"{path}\" }}"));
    let manifest = format!(
        "name = \"mine\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\nroutes = [{}]\n",
        routes.join(", ")
    );
    plugin_manifest::append_section(&mut wasm, plugin_manifest::SECTION, manifest.as_bytes());
    fs::write(author.path("mine.wasm"), wasm).unwrap();
    let own = ["the route `GET /v3/plugins` is", "the route `GET /ping` is"];
    let stock = "plugin `mine` answers `/v2/mine`, and only stock plugins";
    let memories =
        "it has 5 memories, but a plugin may have at most 4: compose it of fewer components";
    let store = "which takes the capability `store`, and its manifest does not ask for that";
    let sockets = "it imports `wasi:sockets/tcp@0.2.6`, which no plugin gets";
    let expected = [own[0], own[1], stock, memories, store, sockets];
    finds(&author, "", "check mine.wasm", &expected);
    // The component is not compiled only once the policy is complete.
    author.write("policy.toml", "");
    let expected = [
        own[0],
        own[1],
        "pins no file of a plugin `mine`",
        stock,
        "plugin `mine` answers `/v3/plugins`, `/ping`, which the policy `policy.toml` does not allow",
        memories,
        store,
        sockets,
    ];
    finds(
        &author,
        "",
        "check mine.wasm --policy policy.toml",
        &expected,
    );
}

#[test]
fn all_mistakes_in_a_plugin_toml_are_listed_at_once() {
    let author = Author::new();
    author.run("new rails --lang javascript").succeeds();
    author.edit("rails/plugin.toml", "name = \"rails\"", "name = \"Rails\"");
    author.edit("rails/plugin.toml", "store = ", "stor = ");
    author.edit(
        "rails/plugin.toml",
        "GET /v3/rails/:name",
        "GET /v3/plugins",
    );
    let expected = [
        "plugin.toml:1:1: `name` must be",
        ": `stor` is not known here",
        "is the supervisor's own (`GET /v3/plugins`)",
    ];
    finds(&author, "rails", "check", &expected);
    let built = author.run_in("rails", "build").fails();
    for expected in expected {
        assert!(built.err.contains(expected), "{}", built.err);
    }
}

/// The stock plugin `led-blink` provides `identify` on all boards.
#[test]
fn a_provider_of_an_action_of_a_stock_plugin_needs_boards() {
    let author = Author::new();
    let put = |manifest: &str| fs::write(author.path("mine.wasm"), plugin(manifest)).unwrap();
    let conflict = "`identify` is also provided by the stock plugin `led-blink`";
    let identify = "provides = [\"identify\"]";
    for boards in ["", "boards = [\"*\"]"] {
        put(&format!("{identify}\n{boards}"));
        let checked = author.run("check mine.wasm").fails();
        assert!(checked.out.contains(conflict), "{}", checked.out);
    }
    put(&format!("{identify}\nboards = [\"acme-*\"]"));
    let checked = author.run("check mine.wasm").succeeds();
    // The policy decides, and this one names no board.
    let lines = checked.out.split("these lines:").nth(1).unwrap();
    author.write("policy.toml", lines);
    author
        .run("check mine.wasm --policy policy.toml")
        .succeeds();
    author.edit("policy.toml", "boards = ", "# boards = ");
    let checked = author.run("check mine.wasm --policy policy.toml").fails();
    assert!(checked.out.contains(conflict), "{}", checked.out);
    // The stock plugin itself is no conflict.
    let stock = tests::distribution().join("plugins/led_blink.wasm");
    author.run(&format!("check {}", stock.display())).succeeds();
    let stock = tests::distribution().join("plugins/device_info.wasm");
    author.run(&format!("check {}", stock.display())).succeeds();
}

#[test]
fn an_invalid_policy_is_not_mistaken_for_one_that_does_not_name_the_plugin() {
    let author = Author::new();
    author.write("wrong.toml", "[plugins.greeter]\ngrants = [\"devise\"]\n");
    let greeter = guest("greeter").display().to_string();
    let checked = author
        .run(&format!("check {greeter} --policy wrong.toml"))
        .fails();
    let error = "the policy `wrong.toml` is invalid: line 2, column 11: `devise` is not known here; choose one of ";
    assert!(checked.out.contains(error), "{}", checked.out);
    let reason = "does not load: no policy is in force: it is invalid, see above";
    assert!(checked.out.contains(reason), "{}", checked.out);
    assert!(!checked.out.contains("pins no file"), "{}", checked.out);
}

#[test]
fn a_component_is_inspected_without_running_it() {
    let author = Author::new();
    let gauge = guest("tank_gauge").display().to_string();
    let shown = author.run(&format!("inspect {gauge}")).succeeds();
    for line in ["tank-gauge 0.1.0", "POST /v3/tanks/:tank", "metrics: "] {
        assert!(shown.out.contains(line), "{}", shown.out);
    }
    let json = author
        .run(&format!("inspect {gauge} --json"))
        .succeeds()
        .json();
    assert_eq!(json["capabilities"][0]["name"], "metrics");
    assert_eq!(json["signature"], serde_json::Value::Null);
}

#[test]
fn events_schedules_and_actions_are_inspected_by_name() {
    let author = Author::new();
    let inspect = |name: &str| {
        let words = format!("inspect {}", guest(name).display());
        let json = author.run(&format!("{words} --json")).succeeds().json();
        (author.run(&words).succeeds().out, json)
    };
    let (shown, json) = inspect("update_hold");
    for line in [
        "  event        start\n",
        "  event        update-gate\n",
        "  schedule     count-down: every 10s\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    assert!(!shown.contains("  provides "), "{shown}");
    let events = json["events"].as_array().unwrap();
    for kind in ["start", "schedule", "update-gate"] {
        assert!(events.contains(&kind.into()), "{json}");
    }
    assert_eq!(json["schedules"]["count-down"], "every 10s");
    let (shown, json) = inspect("acme_rails");
    assert!(shown.contains("  action       set\n"), "{shown}");
    assert_eq!(json["actions"], serde_json::json!(["list", "set"]));
}

#[test]
fn the_limits_without_a_policy_and_a_missing_record_of_the_sdk_are_inspected() {
    let author = Author::new();
    // Built by cargo, and its manifest asks for more than the defaults.
    let ticker = guest("ticker").display().to_string();
    let shown = author.run(&format!("inspect {ticker}")).succeeds();
    for line in [
        "  sdk          not recorded; `supervisor-plugin build` records it in plugins that use an SDK\n",
        "  limit        memory_mib = 16\n",
        "  limit        cpu_ms = 1000\n",
        "  limit        wall_ms = 10000; the plugin asks for 30000, which requires a policy\n",
        "  limit        body_kib = 1024; the plugin asks for 4096, which requires a policy\n",
        "  limit        concurrency = 8\n",
    ] {
        assert!(shown.out.contains(line), "{line} in {}", shown.out);
    }
    let json = author.run(&format!("inspect {ticker} --json")).succeeds();
    let json = json.json();
    assert_eq!(json["sdk"], serde_json::Value::Null);
    assert_eq!(
        json["limits"],
        serde_json::json!({ "wall_ms": 30_000, "body_kib": 4096 })
    );
    assert_eq!(
        json["limits_without_policy"],
        serde_json::json!({
            "memory_mib": 16, "cpu_ms": 1000, "wall_ms": 10_000, "body_kib": 1024, "concurrency": 8
        })
    );
}

/// Whoever gives an author a component has written everything in it.
#[test]
fn a_strangers_record_of_an_sdk_does_not_steer_the_terminal() {
    let author = Author::new();
    // One field, `sdk`, with one tool and its version.
    let version = "1\u{1b}[2J\n  signature    in the file";
    let mut record = b"\x01\x03sdk\x01\x0esupervisor-sdk".to_vec();
    record.push(u8::try_from(version.len()).unwrap());
    record.extend(version.as_bytes());
    let mut wasm = plugin(&route("/v3/mine/:what"));
    let mut section = Vec::new();
    plugin_manifest::append_section(&mut section, "producers", &record);
    // Before the record of the compiler.
    let beginning = plugin_manifest::COMPONENT.len();
    wasm.splice(beginning..beginning, section);
    fs::write(author.path("mine.wasm"), wasm).unwrap();
    let shown = author.run("inspect mine.wasm").succeeds();
    let line = "  sdk          supervisor-sdk 1\\u{1b}[2J\\n  signature    in the file\n";
    assert!(shown.out.contains(line), "{}", shown.out);
    let json = author.run("inspect mine.wasm --json").succeeds().json();
    let shown = "1\\u{1b}[2J\\n  signature    in the file";
    assert_eq!(json["sdk"]["version"], shown);
}

/// `supervisor-plugin inspect FILE 2>&1 | head -1`
#[test]
fn a_command_whose_output_nobody_reads_keeps_its_exit_code() {
    let greeter = guest("greeter").display().to_string();
    for (file, code) in [(greeter.as_str(), 0), ("none.wasm", 1)] {
        let (_, writer) = std::io::pipe().unwrap();
        let ended = Command::new(TOOL)
            .args(["inspect", file])
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .status()
            .unwrap();
        assert_eq!(ended.code(), Some(code), "{file}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let greeter = guest("greeter").display().to_string();
    let full = fs::File::create("/dev/full").unwrap();
    let ended = Command::new(TOOL)
        .args(["inspect", "--json", &greeter])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let message = String::from_utf8(ended.stderr).unwrap();
    assert!(
        message.starts_with("error: cannot write to standard output: No space left on device"),
        "{message}"
    );
}

#[test]
fn calls_are_measured() {
    let author = Author::new();
    let greeter = guest("greeter").display().to_string();
    let bench = [
        "bench",
        "GET /v3/greet/Ada?greeting=Hi",
        &greeter,
        "--calls=20",
        "--json",
    ];
    let measured = author.run_words(&bench).succeeds().json();
    assert_eq!(measured["calls"], 20);
    assert!(measured["p50_ms"].as_f64().unwrap() > 0.0, "{measured}");
    let refused = author
        .run_words(&["bench", "GET /v3/greet/Ada", &greeter])
        .fails();
    assert!(refused.err.contains("the answer is 400"), "{}", refused.err);
}
