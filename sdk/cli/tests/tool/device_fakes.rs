//! `test`: what a device file can answer, what a step can compare besides answers, and what a failure says to write.

use tests::guest;

use crate::author::{Author, CommandOutput};

const PAGE: &str = include_str!("../../../../docs/plugin-tool.md");

/// Runs the steps with the component on the device, whose file is named in them as `device.toml`.
fn run(component: &str, device: &str, steps: &str) -> CommandOutput {
    let author = Author::new();
    author.write("device.toml", device);
    author.write("steps.toml", &format!("device = \"device.toml\"\n{steps}"));
    let component = guest(component).display().to_string();
    author.run(&format!("test {component} --file steps.toml"))
}

/// Checks that a run has printed these texts to standard output.
fn check(run: &CommandOutput, expected: &[&str]) {
    for text in expected {
        assert!(run.out.contains(text), "{text} in {}\n{}", run.out, run.err);
    }
}

const FIND: &str = r#"
[[request]]
post = "/v3/find-me"
answer = { status = 200, json = { shown = "local" } }

[[log]]
lines = ["info: somebody is looking for `local`"]

[[log]]
lines = []
"#;

#[test]
fn a_plugin_that_has_the_device_identify_itself_is_answered_by_the_device_file() {
    for device in ["[identify]\n", "[identify]\nafter_ms = 1\n"] {
        check(&run("find_me", device, FIND), &["3 passed, 0 failed"]);
    }
    let failed = run("find_me", "[identify]\nfailed = \"it is dark\"\n", FIND);
    check(
        &failed,
        &[
            "expected the status 200, got 500",
            "\"message\": \"it is dark\"",
            "2 passed, 1 failed",
        ],
    );

    let hint = "no plugin of this device provides `identify`, and `device.toml` has no answer in its place: add a table \
                [identify] to it, for example with the line `after_ms = 15000`";
    let failed = run("find_me", "", FIND);
    check(&failed, &[hint, "2 passed, 1 failed"]);
    // The answer contains it, so it is not repeated.
    assert_eq!(failed.out.matches(hint).count(), 1, "{}", failed.out);
    assert!(failed.err.contains(hint), "{}", failed.err);
}

/// The stock plugin behind `PATCH /v1/device/host-config` calls each function of the action.
#[test]
fn a_plugin_that_configures_the_proxy_is_answered_by_the_device_file() {
    let get = |network: &str| {
        format!(
            "[[request]]\nget = \"/v1/device/host-config\"\nanswer = {{ status = 200, json = {{ network = {{ {network} }} }} }}\n"
        )
    };
    let patch = |proxy: &str, answer: &str| {
        format!(
            "[[request]]\npatch = \"/v1/device/host-config\"\njson = {{ network = {{ proxy = {{ {proxy} }} }} }}\n\
             answer = {{ {answer} }}\n"
        )
    };
    let device = |redirector: &str| {
        format!("[files]\n\"/etc/hostname\" = \"gate\\n\"\n[proxy_redirector]\n{redirector}")
    };
    let proxy = "proxy = { kind = \"http-connect\", address = \"10.0.0.9\", port = 1080, login = \"ada\" }\n\
                 no_proxy = [\"10.0.0.0/8\"]\n";
    let before = "hostname = \"gate\", proxy = { type = \"http-connect\", ip = \"10.0.0.9\", port = \"1080\", login = \"ada\", \
                  noProxy = [\"10.0.0.0/8\"] }";
    let after = "hostname = \"gate\", proxy = { type = \"socks5\", ip = \"10.0.0.7\", port = \"1081\", noProxy = [\"192.0.2.7\"] }";
    let change = "type = \"socks5\", ip = \"10.0.0.7\", port = 1081, login = \"\", noProxy = [\"192.0.2.7\"]";
    let steps = [
        get(before),
        patch(change, "status = 200, body = \"OK\""),
        get(after),
        patch("", "status = 200"),
        get("hostname = \"gate\""),
    ];
    check(
        &run("host_config", &device(proxy), &steps.concat()),
        &["5 passed, 0 failed"],
    );

    let steps = [
        patch(
            change,
            "status = 400, body = \"no proxy here can have this address\"",
        ),
        get("hostname = \"gate\""),
    ];
    let refused = device("refused = \"no proxy here can have this address\"\n");
    let refused = run("host_config", &refused, &steps.concat());
    check(&refused, &["2 passed, 0 failed"]);

    let hint = "`device.toml` has no answer in its place: add a table [proxy_redirector] to it";
    let failed = run("host_config", "", &patch(change, "status = 200"));
    check(&failed, &[hint, "0 passed, 1 failed"]);
    assert!(failed.err.contains(hint), "{}", failed.err);
}

#[test]
fn a_plugin_for_other_boards_is_refused_with_the_boards_and_the_type() {
    let steps = "[[request]]\nget = \"/v3/leds\"\nanswer = { status = 404 }\n";
    for (device, expected) in [
        (
            "",
            "the plugin is for the boards `acme-*` (`boards` of its manifest), and `device.toml` gives the device no type: add \
             for example `type = \"acme-1\"` to its table [device]",
        ),
        (
            "[device]\ntype = \"generic\"\n",
            "and the device's type is `generic`: change `type` in the table [device] of `device.toml`, for example to",
        ),
    ] {
        let refused = run("board_leds", device, steps);
        assert_eq!(refused.code, 1);
        let text = &refused.err;
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let device = "[device]\ntype = \"acme-2\"\n";
    check(&run("board_leds", device, steps), &["1 passed, 0 failed"]);
}

const WEATHER: &str = r#"
[[request]]
get = "/v3/weather/north"
answer = { status = 200, json = { celsius = 21.5 } }
"#;

#[test]
fn another_host_can_be_slow_unreachable_or_answer_too_much() {
    let device = |answer: &str| {
        format!(
            "[config]\nserver = \"https://api.weather.example\"\n[http]\n\
             \"GET https://api.weather.example/now/north\" = {{ {answer} }}\n"
        )
    };
    for (answer, expected) in [
        (
            "body = '{\"celsius\":21.5}', after_ms = 1",
            "1 passed, 0 failed",
        ),
        ("unreachable = \"connection refused\"", "connection refused"),
        (
            "too_large = \"the answer has more than 1 MiB\"",
            "the answer has more than 1 MiB",
        ),
    ] {
        check(&run("weather", &device(answer), WEATHER), &[expected]);
    }
    let author = Author::new();
    author.write("device.toml", &device("unreachable = \"a\", status = 200"));
    author.write(
        "steps.toml",
        &format!("device = \"device.toml\"\n{WEATHER}"),
    );
    let weather = guest("weather").display().to_string();
    let refused = author
        .run(&format!("test {weather} --file steps.toml"))
        .fails();
    let expected = "or one of the errors `unreachable` and `too_large`";
    assert!(refused.err.contains(expected), "{}", refused.err);
}

#[test]
fn a_reason_may_be_compared_by_the_texts_that_it_contains() {
    let steps = |answer: &str| {
        format!(
            "[[action]]\nname = \"set\"\njson = {{ name = \"12v\", on = true }}\nanswer = {{ {answer} }}\n"
        )
    };
    for (answer, expected) in [
        (
            "refused = { contains = [\"no rail\", \"12v\"] }",
            "1 passed, 0 failed",
        ),
        (
            "refused = { contains = [\"5v\"] }",
            "expected that it refuses with a reason that contains \"5v\", got that it refuses with \"there is no rail `12v`\"",
        ),
        (
            "contains = [\"12v\"]",
            "if that is what the test expects, write `refused = { contains = [...] }`",
        ),
    ] {
        check(&run("acme_rails", "", &steps(answer)), &[expected]);
    }
}

/// The page shows how to write each form of a value: RAUC's answers have all of them.
#[test]
fn the_documented_values_of_the_system_bus_are_read_by_a_plugin() {
    let (_, section) = PAGE.split_once("\n### Values on the system bus\n").unwrap();
    let (_, block) = section.split_once("```toml\n").unwrap();
    let (device, _) = block.split_once("```").unwrap();
    let steps = r#"
[[action]]
os_update = "status"
answer = { json = { running = "1.0.0", staged = "2.0.0", committed = true } }
"#;
    check(&run("rauc_update", device, steps), &["1 passed, 0 failed"]);
}
