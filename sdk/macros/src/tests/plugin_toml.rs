//! `plugin.toml` together with the macro.

use super::Crate;

const RAILS: &str = r#"name = "rails"
version = "2.1.0"
description = "Shows the board's power rails"
license = "MIT"
openapi = "openapi.json"
boards = ["acme-*"]

[capabilities]
store = "keeps the counters"

[routes]
"GET /v3/rails/:name" = "rails::show"
"DELETE /v3/rails/:name" = "reset"

[provides]
identify = "blink"

[limits]
memory_mib = 32
"#;

fn with_project(text: &str) -> Crate {
    Crate::new()
        .with_file("plugin.toml", text)
        .with_file("openapi.json", "{}")
}

#[test]
fn an_empty_macro_declares_what_the_file_says() {
    let (manifest, paths) = with_project(RAILS).with_name("Acme_M").accepted("");
    assert_eq!(
        (
            manifest.name.as_str(),
            manifest.version.to_string().as_str()
        ),
        ("rails", "2.1.0")
    );
    assert_eq!(paths, "reset rails::show blink");
    assert_eq!(manifest.about.licence.as_deref(), Some("MIT"));
    assert_eq!(manifest.boards, ["acme-*"]);
    assert_eq!(manifest.limits.memory_mib, Some(32));
    let tokens =
        crate::expand::expand("".parse().unwrap(), &with_project(RAILS).package).to_string();
    // Cargo rebuilds the crate when they change.
    assert!(
        tokens.contains("\"/plugin.toml\"") && tokens.contains("\"/openapi.json\""),
        "{tokens}"
    );
}

#[test]
fn a_part_is_in_the_file_or_in_the_macro() {
    let file = "name = \"rails\"\nversion = \"2.1.0\"\n[limits]\ncpu_ms = 5\n[provides]\nidentify = \"blink\"\n";
    let (manifest, paths) = with_project(file).accepted("boot_config => Firmware vendor: \"Acme\"");
    assert_eq!(manifest.about.vendor.as_deref(), Some("Acme"));
    assert_eq!(paths, "blink Firmware");
    assert_eq!(
        with_project(file).errors("\nlimits: { cpu_ms: 6 }\n  identify => blink"),
        [
            "2:1: `limits` is in plugin.toml too, in line 4: leave it out in one of them",
            "3:3: `identify` is in plugin.toml too, in line 6: leave it out in one of them",
        ]
    );
}

#[test]
fn mistakes_in_the_file_have_its_line_and_column() {
    for (from, to, expected) in [
        (
            "GET /v3/rails/:name",
            "GET v3",
            "12:1: invalid route `v3`: it must begin with `/`",
        ),
        (
            "GET /v3/rails/:name",
            "GET",
            "12:1: a route is a method and a path: `\"GET /v3/hello\" = \"hello\"`",
        ),
        (
            "DELETE /v3/rails/:name",
            "GET /v3/rails/:id",
            "12:1: `GET /v3/rails/:id` matches the same paths: leave one of them out",
        ),
        (
            "GET /v3/rails/:name",
            "GET /v3/plugins",
            "12:1: `GET /v3/plugins` is a route of the supervisor's own: choose another path",
        ),
        (
            "GET /v3/rails/:name",
            "GET /v2/rails/:name",
            "12:1: only stock plugins answer below `/v1` and `/v2`: choose another path",
        ),
        (
            "rails::show",
            "",
            "12:25: name the function that answers by its Rust path, for example `rails::show`",
        ),
        (
            "rails::show",
            "rails.show",
            "12:25: name the function that answers by its Rust path, for example `rails::show`",
        ),
        (
            "store =",
            "stor =",
            "9:1: `stor` is not known here; choose one of `device`, `store`, ",
        ),
        (
            "keeps the counters",
            "",
            "9:9: the reason for the capability `store` must have 1 to 512 bytes, and has 0",
        ),
        (
            "memory_mib = 32",
            "memory_mib = 33",
            "19:14: `memory_mib` is 33, but must be 1 to 32",
        ),
        (
            "\"rails\"",
            "\"Rails\"",
            "1:8: `name` must be at most 63 lower-case letters, digits and `-`, and begin with a \
          letter or digit",
        ),
        (
            "\"2.1.0\"",
            "\"2\"",
            "2:11: unexpected end of input while parsing major version number",
        ),
        (
            "boards = [",
            "boards = ]",
            "6:10: missing array opening, expected `[`",
        ),
        (
            "[limits]",
            "[build]\nlanguage = \"python\"\n[limits]",
            "19:12: `language` is `python`, and `plugin!` is for \
          Rust: leave `language` out",
        ),
        (
            "boards",
            "interface = \"1.0.0\"\nboards",
            "6:13: `interface` is 1.0.0, and this SDK has 1.4.0: leave \
          `interface` out",
        ),
        (
            "openapi.json",
            "other.json",
            "5:11: failed to read `other.json` beside Cargo.toml: No such file or directory \
          (os error 2)",
        ),
    ] {
        let text = RAILS.replace(from, to);
        assert_ne!(text, RAILS);
        let errors = with_project(&text).errors("");
        assert_eq!(errors.len(), 1, "{to}: {errors:?}");
        let expected = format!("1:1: plugin.toml:{expected}");
        assert!(
            errors[0].starts_with(&expected),
            "{to}: {} is not {expected}",
            errors[0]
        );
    }
}

#[test]
fn mistakes_of_both_are_reported_at_once() {
    let text = RAILS.replace("memory_mib = 32", "memory_mib = 33\ncpu_ms = 0");
    assert_eq!(
        with_project(&text).errors("vendor: \"\""),
        [
            "1:1: plugin.toml:20:10: `cpu_ms` is 0, but must be 1 to 60000",
            "1:1: plugin.toml:19:14: `memory_mib` is 33, but must be 1 to 32",
            "1:9: `vendor` must have 1 to 512 bytes, and has 0",
        ]
    );
}
