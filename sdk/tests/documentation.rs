//! Checks that the code in docs/plugins.md is identical to code that is compiled and tested
//! elsewhere.
//!
//! `UPDATE_EXPECT=1 cargo test -p supervisor-sdk --test documentation` copies the code there again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

/// Checks the block that follows the marker `<!-- name -->` in the page.
fn check(name: &str, source: &str) {
    let page_file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/plugins.md");
    let page = std::fs::read_to_string(&page_file).unwrap();
    let open = format!("<!-- {name} -->\n```rust\n");
    let start = page.find(&open).map(|at| at + open.len()).unwrap();
    let length = page[start..].find("```\n").unwrap();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let updated = [&page[..start], source, &page[start + length..]].concat();
        std::fs::write(&page_file, updated).unwrap();
    } else {
        assert_eq!(
            &page[start..start + length],
            source,
            "the block `{name}` of docs/plugins.md"
        );
    }
}

#[test]
fn the_code_of_the_page_is_the_code_that_is_tested() {
    let first: String = include_str!("../src/lib.rs")
        .lines()
        .skip_while(|line| *line != "//! ```")
        .skip(1)
        .take_while(|line| *line != "//! ```")
        .map(|line| line.strip_prefix("//! ").unwrap_or_default().to_owned() + "\n")
        .collect();
    check("first", &first);
    check("greeter", include_str!("../../examples/greeter/src/lib.rs"));
    let test = include_str!("../../examples/greeter/tests/greeter.rs");
    check("harness", test);
}

#[test]
fn the_plugin_toml_of_the_page_declares_a_plugin() {
    let page = include_str!("../../docs/plugins.md");
    let block = page.split("<!-- project -->\n```toml\n").nth(1).unwrap();
    let text = block.split("```").next().unwrap();
    let project = plugin_manifest::Project::parse(text).unwrap();
    assert_eq!(project.handlers, ["reset", "rails::show"]);
}

#[test]
fn a_whole_endpoint_takes_25_lines() {
    let greeter = include_str!("../../examples/greeter/src/lib.rs");
    let code = greeter.lines().filter(|line| !line.starts_with("//!"));
    assert!(code.count() <= 25);
}

#[test]
fn the_page_names_every_capability_of_the_interface() {
    let page = include_str!("../../docs/plugins.md");
    for line in include_str!("../../wit/worlds.wit").lines() {
        if let Some(interface) = line.trim().strip_prefix("import ") {
            let module = match interface.trim_end_matches(';') {
                "identify-window" => "identify",
                other => other,
            };
            assert!(page.contains(&format!("| `{module}` |")), "{module}");
        }
    }
}
