//! Checks that the code in docs/ is identical to code that is compiled and tested elsewhere.
//!
//! `UPDATE_EXPECT=1 cargo test -p supervisor-sdk --test documentation` copies the code there again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

const PLUGINS: &str = "plugins.md";
const OS_UPDATE: &str = "os-update.md";

/// Checks the block that follows the marker `<!-- name -->` in a page of docs/.
fn check(page: &str, name: &str, source: &str) {
    let page_file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(page);
    let text = std::fs::read_to_string(&page_file).unwrap();
    let open = format!("<!-- {name} -->\n```rust\n");
    let start = text.find(&open).map(|at| at + open.len()).unwrap();
    let length = text[start..].find("```\n").unwrap();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let updated = [&text[..start], source, &text[start + length..]].concat();
        std::fs::write(&page_file, updated).unwrap();
    } else {
        assert_eq!(
            &text[start..start + length],
            source,
            "the block `{name}` of docs/{page}"
        );
    }
}

/// Returns an example as it is in a project of `supervisor-plugin`, where `plugin.toml` has the declaration.
fn in_project(example: &str) -> String {
    let (before, declaration) = example.split_once("plugin! {\n").unwrap();
    let (_, after) = declaration.split_once("\n}\n").unwrap();
    format!("{before}plugin! {{}}\n{after}")
}

/// Returns the examples in the description of a module, each of which is compiled as a test of its own.
fn examples(module: &str) -> Vec<String> {
    let lines = module.lines().map_while(|line| line.strip_prefix("//!"));
    let text: String = lines
        .map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned() + "\n")
        .collect();
    let blocks = text.split("```\n").skip(1).step_by(2);
    blocks.map(str::to_owned).collect()
}

#[test]
fn the_code_of_the_pages_is_the_code_that_is_tested() {
    let [first] = &examples(include_str!("../src/lib.rs"))[..] else {
        panic!("one example");
    };
    check(PLUGINS, "first", first);
    check(
        PLUGINS,
        "greeter",
        include_str!("../../examples/greeter/src/lib.rs"),
    );
    let test = include_str!("../../examples/greeter/tests/greeter.rs");
    check(PLUGINS, "harness", test);
    let [own, call] = &examples(include_str!("../src/actions.rs"))[..] else {
        panic!("two examples");
    };
    check(PLUGINS, "own-action", &in_project(own));
    check(PLUGINS, "action-call", call);
    let [events] = &examples(include_str!("../src/events.rs"))[..] else {
        panic!("one example");
    };
    check(PLUGINS, "events", &in_project(events));
    let [provider] = &examples(include_str!("../src/os_update.rs"))[..] else {
        panic!("one example");
    };
    check(OS_UPDATE, "os-update", &in_project(provider));
}

/// Code without a marker is compiled by nothing.
#[test]
fn each_block_in_rust_has_a_marker() {
    for page in [
        include_str!("../../docs/plugins.md"),
        include_str!("../../docs/os-update.md"),
        include_str!("../../docs/plugin-tool.md"),
    ] {
        let mut before: Vec<&str> = page.split("```rust\n").collect();
        // What follows the last block stands before none.
        before.pop();
        for text in before {
            let line = text.lines().next_back().unwrap_or_default();
            assert!(line.starts_with("<!-- "), "after `{line}`");
        }
    }
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
