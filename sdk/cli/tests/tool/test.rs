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
        "expected the JSON with `-`, got that with `+`:",
        "-   \"greeting\": \"Hi, Ada! I am shelf 5.\"",
        "+   \"greeting\": \"Hi, Ada! I am shelf 4.\"",
        "failed greeter.toml:7 POST /v3/greet/Ada",
        "0 passed, 2 failed",
    ] {
        assert!(failed.out.contains(line), "{line} in {}", failed.out);
    }
    assert_eq!(failed.out.matches("shelf 4.").count(), 1, "{}", failed.out);
    let json = author.run(&format!("{words} --json")).fails().json();
    assert_eq!(json["failed"].as_array().unwrap().len(), 2);
}

/// Without its file, a device would be an empty one, on which a test may pass for the wrong reason.
#[test]
fn a_device_file_that_is_named_must_exist_and_the_projects_own_may_be_missing() {
    let author = Author::new();
    let greeter = guest("greeter").display().to_string();
    std::fs::create_dir_all(author.path("test/devices")).unwrap();
    let request =
        "[[request]]\nget = \"/v3/greet/Ada?greeting=Salut\"\nanswer = { status = 200 }\n";
    author.write("test/greeter.toml", request);
    let words = format!("test {greeter}");
    author.run(&words).succeeds();
    author.write("device.toml", "[lamps]\n");
    let refused = author.run(&words).fails();
    let invalid =
        "device.toml` is invalid: line 1, column 2: there is no key `lamps` here; the keys are";
    assert!(refused.err.contains(invalid), "{}", refused.err);

    author.write(
        "test/greeter.toml",
        &format!("device = \"devices/broken-led.toml\"\n{request}"),
    );
    let refused = author.run(&words).fails();
    for expected in [
        "test/greeter.toml`: there is no device file `",
        "test/devices/broken-led.toml`: create it, or name another one",
    ] {
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
    author.write("test/devices/broken-led.toml", "");
    author.run(&words).succeeds();

    let refused = author
        .run_words(&[
            "bench",
            "GET /v3/greet/Ada?greeting=Salut",
            &greeter,
            "--device",
            "gone.toml",
        ])
        .fails();
    let missing = "there is no device file `gone.toml`: create it, or name another one";
    assert!(refused.err.contains(missing), "{}", refused.err);
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

#[test]
fn a_schedule_that_the_plugin_does_not_have_fails_and_those_that_it_has_are_listed() {
    let author = Author::new();
    let door = guest("door_relay").display().to_string();
    author.write(
        "door.toml",
        "[[event]]\nschedule = \"humidity\"\n\n[[event]]\nconnection = true\n",
    );
    let failed = author.run(&format!("test {door} --file door.toml")).fails();
    for expected in [
        "door.toml:1 event schedule\n    the plugin is not called for it: add `humidity` to [schedules] in plugin.toml, which \
         has only `temperature`\n",
        "door.toml:4 event connection\n    the plugin is not called for it: add `connection` to `events` in plugin.toml, which \
         has none\n",
        "0 passed, 2 failed",
    ] {
        assert!(
            failed.out.contains(expected),
            "{expected} in {}",
            failed.out
        );
    }
}

#[test]
fn a_refusal_says_what_the_author_writes_into_the_device_file() {
    let author = Author::new();
    let door = guest("door_relay").display().to_string();
    author.write("device.toml", "[units.\"openvpn.service\"]\n");
    author.write(
        "door.toml",
        "device = \"device.toml\"\n[[event]]\nschedule = \"temperature\"\n",
    );
    let words = format!("test {door} --file door.toml");
    let failed = author.run(&words).fails();
    let remedy = "`device.toml` has no chip `thermometer`: add `\"thermometer\" = { registers = [0x00] }` to its table [i2c]";
    assert!(failed.out.contains(remedy), "{}", failed.out);
    // Also for a plugin that does not pass the reason on.
    assert!(failed.err.contains(remedy), "{}", failed.err);

    for (file, expected) in [
        (
            "[policy]\nlamps = 1\n",
            "`device.toml` does not describe a device: there is no key `lamps` here; the keys are",
        ),
        (
            "[policy]\nleds = [\"ACT\"]\n",
            "it names `leds` without granting \"led\": ask for that in [capabilities] of plugin.toml, or remove it from [policy]",
        ),
    ] {
        author.write("device.toml", file);
        let refused = author.run(&words).fails();
        assert!(refused.err.contains(expected), "{}", refused.err);
        assert!(!refused.err.contains("policy.toml"), "{}", refused.err);
    }
}

const PANEL_DEVICE: &str = r#"[actions]
"acme-rails/list" = { json = [{ name = "5v", on = true }] }
"acme-rails/set" = { json_text = 'null' }
"#;

const PANEL: &str = r#"device = "device.toml"

[[request]]
get = "/v3/rail-panel"
answer = { status = 200, json = [{ name = "5v", on = true }] }

[[request]]
post = "/v3/rail-panel/5v/on"
answer = { status = 200, json_text = '{"switchedBy":null}' }

[[actions]]
calls = [
    { action = "acme-rails/list", json = "" },
    { action = "acme-rails/set", json = { name = "5v", on = true } },
]

[[actions]]
calls = []
"#;

#[test]
fn other_plugins_answer_what_the_device_file_says_and_calls_of_them_are_compared() {
    let author = Author::new();
    let panel = guest("rail_panel").display().to_string();
    let words = format!("test {panel} --file panel.toml");
    for (device, from, to, expected) in [
        (PANEL_DEVICE, "", "", "4 passed, 0 failed"),
        (
            PANEL_DEVICE,
            "json = { name = \"5v\", on = true } },\n]",
            "json = { name = \"5v\", on = false } },\n]",
            "failed panel.toml:11 actions\n    call 2, of the action `acme-rails/set`: expected the input with `-`, got the one \
             with `+`:\n        {\n          \"name\": \"5v\",\n      -   \"on\": false\n      +   \"on\": true\n        }\n3 passed",
        ),
        (
            PANEL_DEVICE,
            "    { action = \"acme-rails/list\", json = \"\" },\n",
            "",
            "the plugin has also called the action `acme-rails/set`",
        ),
        (
            "[actions]\n\"acme-rails/list\" = { failed = \"it is out of order\" }\n\
             \"acme-rails/set\" = { refused = \"the press is running\" }\n",
            "",
            "",
            "expected the status 200, got 409",
        ),
        (
            "[actions]\n\"acme-rails/list\" = { failed = \"it is out of order\" }\n\
             \"acme-rails/set\" = { refused = \"the press is running\" }\n",
            "",
            "",
            "expected the status 200, got 502",
        ),
    ] {
        author.write("device.toml", device);
        author.write("panel.toml", &PANEL.replace(from, to));
        let run = author.run(&words);
        let out = &run.out;
        assert!(out.contains(expected), "{expected} in {out}\n{}", run.err);
        assert_eq!(run.err, "");
    }
}

#[test]
fn an_action_without_an_answer_is_named_with_what_to_write() {
    let author = Author::new();
    let panel = guest("rail_panel").display().to_string();
    author.write("device.toml", "");
    author.write("panel.toml", PANEL);
    let failed = author
        .run(&format!("test {panel} --file panel.toml"))
        .fails();
    // As on a device without the other plugin.
    for expected in [
        "expected the status 200, got 503",
        "no plugin of this device provides `acme-rails/list`",
        "2 passed, 2 failed",
    ] {
        assert!(
            failed.out.contains(expected),
            "{expected} in {}",
            failed.out
        );
    }
    for action in ["acme-rails/list", "acme-rails/set"] {
        let note = format!(
            "the plugin calls the action `{action}`, and `device.toml` has no answer for it: add for example `\"{action}\" = "
        );
        assert_eq!(failed.err.matches(&note).count(), 1, "{}", failed.err);
        assert_eq!(failed.out.matches(&note).count(), 1, "{}", failed.out);
    }

    let many: String = (0..65)
        .map(|number| format!("\"acme-rails/a{number}\" = {{ json = true }}\n"))
        .collect();
    author.write("device.toml", &format!("[actions]\n{many}"));
    let refused = author
        .run(&format!("test {panel} --file panel.toml"))
        .fails();
    let expected = "`actions` has 65 actions, but at most 64 are allowed";
    assert!(refused.err.contains(expected), "{}", refused.err);
}

const RAILS: &str = r#"device = "device.toml"

[[action]]
name = "set"
json = { name = "5v", on = true }
plugin = "rail-panel"
answer = { json = "rail-panel" }

[[action]]
name = "set"
json_text = '{"name":"12v","on":true}'
answer = { refused = "there is no rail `12v`" }

[[action]]
name = "list"
answer = { json = [{ name = "3v3", on = false }, { name = "5v", on = true }], contains = ["5v"] }
"#;

#[test]
fn an_action_of_the_plugins_own_is_called_as_by_another_plugin_and_its_output_or_error_compared() {
    let author = Author::new();
    let rails = guest("acme_rails").display().to_string();
    author.write("device.toml", "");
    author.write("rails.toml", RAILS);
    let words = format!("test {rails} --file rails.toml");
    let passed = author.run(&words).succeeds();
    assert!(passed.out.contains("3 passed, 0 failed"), "{}", passed.out);

    for (from, to, expected) in [
        (
            "plugin = \"rail-panel\"\n",
            "",
            "failed rails.toml:3 action set\n    expected the output with `-`, got the one with `+`:\n      - \"rail-panel\"\n      \
             + \"other-plugin\"\n",
        ),
        (
            "json = { name = \"5v\", on = true }",
            "base64 = \"eyJuYW1lIjoiNXYiLCJvbiI6ZmFsc2V9\"",
            "failed rails.toml:14 action list\n    expected the output with `-`, got the one with `+`:\n",
        ),
        (
            "there is no rail `12v`",
            "there is no rail `13v`",
            "failed rails.toml:9 action set\n    expected that it refuses with \"there is no rail `13v`\", got that it refuses \
             with \"there is no rail `12v`\"\n",
        ),
        (
            "answer = { refused = \"there is no rail `12v`\" }",
            "",
            "    expected an output, got that it refuses with \"there is no rail `12v`\"\n",
        ),
        (
            "name = \"list\"",
            "name = \"reset\"",
            "failed rails.toml:14 action reset\n    the plugin has no such action: add `reset` to [actions] in plugin.toml, which \
             has only `list`, `set`\n",
        ),
        (
            "name = \"list\"\n",
            "os_update = \"status\"\n",
            "failed rails.toml:14 action os-update status\n    the plugin does not provide it: add `os-update` to [provides] in \
             plugin.toml\n",
        ),
    ] {
        author.edit("rails.toml", from, to);
        let failed = author.run(&words).fails();
        assert!(
            failed.out.contains(expected),
            "{expected} in {}",
            failed.out
        );
        assert!(failed.out.contains("2 passed, 1 failed"), "{}", failed.out);
        author.write("rails.toml", RAILS);
    }

    author.edit("rails.toml", "name = \"list\"", "action = \"list\"");
    let refused = author.run(&words).fails();
    let expected = "there is no key `action` here";
    assert!(refused.err.contains(expected), "{}", refused.err);
}

/// RAUC on a device with two slots: it installs nothing that is not signed, and its boot loader cannot be written.
pub(crate) const RAUC: &str = r#"
[[dbus]]
service = "de.pengutronix.rauc"
path = "/"
member = "org.freedesktop.DBus.Properties.GetAll"

[[dbus.values]]
Operation = { type = "s", data = "idle" }
Compatible = { type = "s", data = "acme-gate" }
BootSlot = { type = "s", data = "A" }

[[dbus]]
service = "de.pengutronix.rauc"
path = "/"
member = "de.pengutronix.rauc.Installer.GetSlotStatus"
values = [[
    ["rootfs.0", { class = { type = "s", data = "rootfs" }, bootname = { type = "s", data = "A" }, state = { type = "s", data = "booted" }, "bundle.version" = { type = "s", data = "1.0.0" } }],
    ["rootfs.1", { class = { type = "s", data = "rootfs" }, bootname = { type = "s", data = "B" }, "bundle.version" = { type = "s", data = "2.0.0" }, status = { type = "s", data = "ok" } }],
]]

[[dbus]]
service = "de.pengutronix.rauc"
path = "/"
member = "de.pengutronix.rauc.Installer.Mark"
error = "org.acme.Error.Busy"
message = "the boot loader is being written"
"#;

const SLOTS: &str = r#"device = "device.toml"

[[action]]
os_update = "status"
answer = { json = { running = "1.0.0", staged = "2.0.0", committed = true } }

[[action]]
os_update = "activate"
answer = { failed = "RAUC: the boot loader is being written (org.acme.Error.Busy)" }

[[action]]
os_update = { stage = { source = "/bundle", version = "3.0.0" } }
answer = { failed = "RAUC: `device.toml` has no answer" }
"#;

#[test]
fn functions_of_os_update_are_called_as_by_the_device_and_a_service_may_answer_with_an_error() {
    let author = Author::new();
    let rauc = guest("rauc_update").display().to_string();
    author.write("device.toml", RAUC);
    author.write("slots.toml", SLOTS);
    let words = format!("test {rauc} --file slots.toml");
    let failed = author.run(&words).fails();
    for expected in [
        "2 passed, 1 failed",
        "failed slots.toml:11 action os-update stage\n    expected that it fails with \"RAUC: `device.toml` has no answer\", \
         got that it fails with \"RAUC: `device.toml` has no answer of `de.pengutronix.rauc.Installer.InspectBundle`",
    ] {
        assert!(failed.out.contains(expected), "{}", failed.out);
    }

    author.edit("device.toml", "org.acme.Error.Busy", "Busy");
    let refused = author.run(&words).fails();
    let expected = "`dbus` has the error `Busy`: write the name of an error of D-Bus";
    assert!(refused.err.contains(expected), "{}", refused.err);
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
    let expected = "there is no key `histograms` here";
    assert!(refused.err.contains(expected), "{}", refused.err);
}
