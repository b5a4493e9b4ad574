//! `check` and `inspect`: problems that a device would refuse, found earlier.

use tests::guest;

use crate::author::Author;

#[test]
fn a_plugin_that_a_device_would_take_passes_and_gets_the_lines_for_its_policy() {
    let author = Author::new();
    let greeter = guest("greeter");
    let checked = author
        .run(&format!("check {}", greeter.display()))
        .succeeds();
    for line in ["[plugins.greeter]", "sha256 = [", "grants = [\"device\"]"] {
        assert!(checked.out.contains(line), "{}", checked.out);
    }
    // With these lines in its policy the component passes too.
    let lines = checked.out.split("these lines:").nth(1).unwrap();
    author.write("policy.toml", lines);
    author
        .run(&format!("check {} --policy policy.toml", greeter.display()))
        .succeeds();
}

#[test]
fn what_a_device_would_refuse_fails_in_the_devices_words() {
    let author = Author::new();
    let greeter = guest("greeter").display().to_string();
    author.write("module.wasm", "\0asm\u{1}\0\0\0");
    author.write("text.wasm", "hello");
    author.write("empty.toml", "");
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
