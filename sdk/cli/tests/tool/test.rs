//! `test`: requests and answers in files.

use tests::guest;

use crate::author::Author;

#[test]
fn answers_are_compared_and_differences_name_file_and_line() {
    let author = Author::new();
    let greeter = guest("greeter").display().to_string();
    author.write("device.toml", "[device]\nname = \"shelf 4\"\n");
    author.write(
        "greeter.toml",
        r#"device = "device.toml"

[[request]]
get = "/v3/greet/Ada?greeting=Hi"
answer = { status = 200, json = { greeting = "Hi, Ada! I am shelf 4." } }

[[request]]
post = "/v3/greet/Ada"
json = { greeting = "" }
answer = { status = 400, contains = ["`greeting` is empty"] }
"#,
    );
    let words = format!("test {greeter} --file greeter.toml");
    let passed = author.run(&words).succeeds();
    assert!(passed.out.contains("2 passed, 0 failed"), "{}", passed.out);

    author.edit("greeter.toml", "shelf 4.", "shelf 5.");
    author.edit("greeter.toml", "is empty", "is full");
    let failed = author.run(&words).fails();
    for line in [
        "failed greeter.toml:3 GET /v3/greet/Ada?greeting=Hi",
        "expected {\"greeting\":\"Hi, Ada! I am shelf 5.\"}, got {\"greeting\":\"Hi, Ada! I am shelf 4.\"}",
        "failed greeter.toml:7 POST /v3/greet/Ada",
        "0 passed, 2 failed",
    ] {
        assert!(failed.out.contains(line), "{line} in {}", failed.out);
    }
    let json = author.run(&format!("{words} --json")).fails().json();
    assert_eq!(json["failed"].as_array().unwrap().len(), 2);
}

const DOOR: &str = r#"
[[request]]
post = "/v3/door/open"
edges = [{ line = "door", on = true }]
answer = { status = 200, json = { was_opened = true } }

[[gpio]]
expect = { relay = false, door = true }

[[i2c]]
set = { thermometer = [0xf5, 0x80] }
expect = { thermometer = [0xf5] }

[[request]]
get = "/v3/door"
answer = { status = 200, json = { is_unlocked = false, is_open = true, celsius = -10.5 } }

[[event]]
schedule = "temperature"

[[metrics]]
gauges = { celsius = -10.5 }
"#;

#[test]
fn lines_and_chips_are_switched_and_compared() {
    let author = Author::new();
    let door = guest("door_relay").display().to_string();
    author.write(
        "device.toml",
        "[gpio]\nrelay = { direction = \"out\" }\ndoor = { direction = \"in\" }\n[i2c]\nthermometer = {}\n",
    );
    author.write("door.toml", &format!("device = \"device.toml\"\n{DOOR}"));
    let words = format!("test {door} --file door.toml");
    let passed = author.run(&words).succeeds();
    assert!(passed.out.contains("6 passed, 0 failed"), "{}", passed.out);

    for (from, to, expected) in [
        (
            "relay = false",
            "relay = true",
            "door.toml:8 gpio\n    expected the line relay to be on, but it is off",
        ),
        (
            "expect = { thermometer = [0xf5] }",
            "expect = { thermometer = [0xf5, 0x81] }",
            "door.toml:11 i2c\n    expected the first registers of thermometer to be 0xf5, 0x81, but they are 0xf5, 0x80",
        ),
        (
            "expect = { relay = false, door = true }",
            "drive = { gate = true }",
            "door.toml:8 gpio\n    the device has no line gate: its file has none in [gpio]",
        ),
        (
            "get = \"/v3/door\"",
            "get = \"/v3/door\"\nedges = [{ line = \"door\", on = false }]",
            "door.toml:15 GET /v3/door\n    expected the plugin to wait for an edge of the line door, but it did not",
        ),
    ] {
        let text = author.read("door.toml");
        author.edit("door.toml", from, to);
        let failed = author.run(&words).fails();
        assert!(
            failed.out.contains(expected),
            "{expected} in {}",
            failed.out
        );
        assert!(failed.out.contains("5 passed, 1 failed"), "{}", failed.out);
        author.write("door.toml", &text);
    }
}

const TANKS: &str = r#"device = "device.toml"

[[request]]
post = "/v3/tanks/north"
json = { level = 0.25 }
answer = { status = 200 }

[[request]]
post = "/v3/tanks/north"
json = { level = 0.5 }
answer = { status = 200 }

[[metrics]]
gauges = { 'level{tank="north"}' = 0.5 }
counters = { 'readings_total{tank="north"}' = 2 }
"#;

#[test]
fn metrics_are_compared_and_a_difference_names_the_series_and_both_values() {
    let author = Author::new();
    let gauge = guest("tank_gauge").display().to_string();
    author.write("device.toml", "");
    author.write("tanks.toml", TANKS);
    let words = format!("test {gauge} --file tanks.toml");
    let passed = author.run(&words).succeeds();
    assert!(passed.out.contains("3 passed, 0 failed"), "{}", passed.out);

    for (from, to, expected) in [
        (
            "}' = 0.5",
            "}' = 0.75",
            "expected the gauge level{tank=\"north\"} to be 0.75, but it is 0.5",
        ),
        (
            "}' = 2",
            "}' = 3",
            "expected the counter readings_total{tank=\"north\"} to be 3, but it is 2",
        ),
        (
            "counters = {",
            "counters = { drains_total = 1,",
            "expected the counter drains_total to be 1, but the plugin has not reported it",
        ),
        (
            "gauges = { 'level{tank=\"north\"}'",
            "gauges = { 'level{tank=\"south\"}'",
            "expected the gauge level{tank=\"south\"} to be 0.5, but the plugin has reported only level{tank=\"north\"}",
        ),
        (
            "gauges = {",
            "gauges = { 'readings_total{tank=\"north\"}' = 2,",
            "expected the gauge readings_total{tank=\"north\"} to be 2, but it is a counter",
        ),
    ] {
        author.edit("tanks.toml", from, to);
        let failed = author.run(&words).fails();
        let expected = format!("failed tanks.toml:13 metrics\n    {expected}\n2 passed, 1 failed");
        assert!(
            failed.out.contains(&expected),
            "{expected} in {}",
            failed.out
        );
        author.write("tanks.toml", TANKS);
    }

    author.edit("tanks.toml", "counters = {", "histograms = {");
    let refused = author.run(&words).fails();
    let expected = "unknown field `histograms`";
    assert!(refused.err.contains(expected), "{}", refused.err);
}
