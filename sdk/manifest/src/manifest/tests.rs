use http::Method;
use proptest::prelude::*;

use super::*;
use crate::name::NAME;

pub(crate) const GOOD: &str = r#"
name = "greet"
version = "0.1.0-beta.1+5"
interface = "1.0.0"
boards = ["raspberrypi*"]
provides = ["identify"]

[[routes]]
method = "GET"
path = "/v3/greet/:name"

[[capabilities]]
name = "device"
reason = "to say the device's name"

[limits]
memory_mib = 4
"#;

fn refusal(text: &str) -> String {
    let error = Manifest::parse(text).unwrap_err();
    let source = std::error::Error::source(&error)
        .map(ToString::to_string)
        .unwrap_or_default();
    let is_repeated = !source.is_empty() && error.to_string().contains(&source);
    assert!(
        !is_repeated,
        "whoever prints the chain prints `{source}` twice"
    );
    format!("{error}\n{source}")
}

/// Returns the shortest manifest, plus `more`.
fn with(more: &str) -> String {
    let route = "[[routes]]\nmethod = \"GET\"\npath = \"/v3/a\"";
    format!("name = \"a\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\n{more}\n{route}")
}

#[test]
fn the_interface_is_the_one_of_the_wit_package() {
    let types = include_str!("../../../../wit/types.wit");
    assert!(types.contains(&format!("package platform:supervisor@{INTERFACE};")));
}

#[test]
fn a_manifest_is_read() {
    let manifest = Manifest::parse(GOOD).unwrap();
    assert_eq!(manifest.name, "greet");
    assert_eq!(manifest.version.to_string(), "0.1.0-beta.1+5");
    assert_eq!(manifest.routes[0].method, Method::GET);
    assert_eq!(manifest.routes[0].pattern.as_str(), "/v3/greet/:name");
    assert_eq!(manifest.provides, [Action::Identify]);
    assert_eq!(manifest.capabilities[0].name, Capability::Device);
    assert!(manifest.is_for("raspberrypi4-64") && !manifest.is_for("intel-nuc"));
}

#[test]
fn each_error_of_a_manifest_is_described() {
    assert!(Manifest::parse(&with("")).is_ok());
    for (text, expected) in [
        (with("limit = 1"), "unknown field `limit`"),
        (with("provides = [\"fly\"]"), "unknown variant `fly`"),
        (
            with("capabilities = [{ name = \"fly\", reason = \"x\" }]"),
            "unknown variant `fly`",
        ),
        (
            with("capabilities = [{ name = \"led\" }]"),
            "missing field `reason`",
        ),
        (
            with("capabilities = [{ name = \"led\", reason = \" \" }]"),
            "the reason for the capability `led`",
        ),
        (
            with(
                "capabilities = [{ name = \"led\", reason = \"x\" }, { name = \"led\", reason = \"y\" }]",
            ),
            "duplicate capability `led`",
        ),
        (
            with("homepage = \"javascript:alert(1)\""),
            "`homepage` must begin with `https://` or `http://`",
        ),
        (
            with("vendor = \"Acme\\nInc\""),
            "`vendor` must be one line of text",
        ),
        (
            with(&format!("description = \"{}\"", "x".repeat(513))),
            "`description` must have 1 to 512 bytes, and has 513",
        ),
        (
            with("limits = { memory_mib = 4096 }"),
            "`memory_mib` is 4096, but must be 1 to 32",
        ),
        (with("").replace("\"a\"", "\"../a\""), "`name` must be"),
        (with("").replace("\"a\"", "\"\""), "`name` must be"),
        (
            with("").replace("version = \"1.0.0\"\ni", "version = \"1\"\ni"),
            "unexpected end of input",
        ),
        (
            with("").replace("interface = \"1.0.0\"", "interface = \"1.5.0\"\nnew = 1"),
            "it needs version 1.5.0",
        ),
        (
            with("").replace("interface = \"1.0.0\"", "interface = \"2.0.0\""),
            "built for version 2.0.0",
        ),
        (
            with("").replace("interface = \"1.0.0\"", ""),
            "missing field `interface`",
        ),
        (
            with("").replace("GET", "get"),
            "the route `/v3/a`: its method is `get`",
        ),
        (
            with("").replace("/v3/a", "v3/a"),
            "invalid route `v3/a`: it must begin with `/`",
        ),
        (
            with("[[routes]]\nmethod = \"GET\"\npath = \"/V3/A\""),
            "duplicate route `GET /v3/a`",
        ),
        (
            with("").split("[[").next().unwrap().to_owned(),
            "it has no routes and provides nothing: declare a route, an event or an action",
        ),
        (
            with("events = [\"start\"]"),
            "asks for events, but `provides` does not contain `events`",
        ),
        (
            with("provides = [\"events\"]"),
            "provides `events`, but asks for none",
        ),
        (
            with("provides = [\"events\"]\nevents = [\"schedule\"]"),
            "name the times in `schedules`",
        ),
        (
            with("provides = [\"events\"]\nschedules = { \"A b\" = \"daily 03:30\" }"),
            "the schedule `A b` must have a name",
        ),
        (
            with("provides = [\"events\"]\nschedules = { a = \"daily 25:30\" }"),
            "`daily 25:30` is not a schedule",
        ),
        ("name = ".to_owned(), "TOML parse error at line 1"),
    ] {
        let refusal = refusal(&text);
        assert!(refusal.contains(expected), "{text}\n{refusal}");
    }
}

#[test]
fn a_manifest_may_say_who_made_it_and_what_for() {
    let about = "description = \"Says hello\"\nvendor = \"Acme\"\nlicense = \"MIT\"\nhomepage = \"https://acme.example\"";
    let manifest = Manifest::parse(&with(about)).unwrap();
    assert_eq!(manifest.about.vendor.as_deref(), Some("Acme"));
    assert_eq!(manifest.about.licence.as_deref(), Some("MIT"));
    let text = manifest.to_toml().unwrap();
    assert_eq!(Manifest::parse(&text).unwrap(), manifest, "{text}");
}

#[test]
fn a_board_pattern_stands_for_any_text_at_each_star() {
    for (pattern, text, expected) in [
        ("raspberrypi*", "raspberrypi4-64", true),
        ("raspberrypi*", "raspberrypi", true),
        ("raspberrypi", "raspberrypi4", false),
        ("*-64", "raspberrypi4-64", true),
        ("*pi*64", "raspberrypi4-64", true),
        ("*pi*65", "raspberrypi4-64", false),
        ("a*a", "a", false),
        ("*", "", true),
        ("a*b*c", "a-b-b-c", true),
    ] {
        assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,400}") {
        let _ = Manifest::parse(&text);
    }

    /// Lines of a good manifest in any order, cut off and with anything in between.
    #[test]
    fn a_damaged_manifest_is_refused_or_within_bounds(
        lines in proptest::sample::subsequence(GOOD.lines().collect::<Vec<_>>(), 0..=GOOD.lines().count()),
        between in "[a-z= \\[\\]\"0-9\\n]{0,60}",
        place in 0usize..20,
    ) {
        let mut lines = lines;
        lines.insert(place.min(lines.len()), &between);
        if let Ok(manifest) = Manifest::parse(&lines.join("\n")) {
            prop_assert!(!manifest.name.is_empty() && manifest.name.len() <= NAME);
            prop_assert!(!manifest.routes.is_empty() || !manifest.provides.is_empty());
        }
    }
}
