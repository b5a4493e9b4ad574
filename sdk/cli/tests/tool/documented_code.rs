//! The code of docs/plugin-tool.md and docs/plugins.md in languages other than Rust: it builds, and it fits the SDK's
//! types. `sdk/python/tests/test_documentation.py` does the same for Python.

use crate::author::{Author, CommandOutput, downloads};
use crate::capabilities;
use crate::languages::can_build;

const PAGE: &str = include_str!("../../../../docs/plugin-tool.md");
const TASKS: &str = include_str!("../../../../docs/plugins.md");
/// The version of the compiler that checks types.
const TYPESCRIPT: &str = "7.0.2";

/// What the page leaves out in Go.
const GO_IMPORTS: &str = r#"package main

import (
	"slices"
	"time"

	"supervisor"
	"supervisor/events"
)

"#;

/// What the cells of the table use, and the names of their variables.
const TASK_IMPORTS: &str = r#"import {
  actions, api, caller, cloud, config, dbus, gpio, http, i2c, identify, journal, led, log, metrics, report, serial,
  store, timer, units, updateLock,
} from "supervisor-sdk";

declare const url: string, path: string, service: string, name: string, member: string, rail: object;

"#;

/// Returns the page's code in a language.
fn code(language: &str) -> String {
    let begin = format!("```{language}\n");
    let blocks = PAGE.split(&begin).skip(1);
    let blocks = blocks.map(|rest| rest.split_once("```").unwrap().0);
    blocks.collect::<Vec<_>>().join("\n")
}

/// Returns a project that consists of the page's code, which is built.
fn built(language: &str, source: &str, text: &str) -> (Author, CommandOutput) {
    let author = Author::with_project(language);
    author.write(&format!("rails/{source}"), text);
    for (from, to) in [
        ("= \"hello\"", "= \"rail\""),
        ("0.1.0\"\n", "0.1.0\"\nevents = [\"update-gate\"]\n"),
        (
            "[capabilities]\n",
            "[provides]\nevents = \"watch\"\n\n[capabilities]\n",
        ),
    ] {
        author.edit("rails/plugin.toml", from, to);
    }
    let printed = author.run_in("rails", "build").succeeds();
    (author, printed)
}

#[test]
fn the_code_of_the_page_builds_in_c() {
    if can_build("c") {
        let (_, printed) = built("c", "src/plugin.c", &code("c"));
        assert!(!printed.err.contains("warning"), "{}", printed.err);
    }
}

#[test]
fn the_code_of_the_page_builds_in_go() {
    if can_build("go") {
        built(
            "go",
            "src/plugin.go",
            &format!("{GO_IMPORTS}{}", code("go")),
        );
    }
}

/// Returns functions with the calls in the column for JavaScript and TypeScript of the page's table of tasks.
fn tasks() -> String {
    let (_, section) = TASKS.split_once("\n## Tasks\n").unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("| "));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let mut text = TASK_IMPORTS.to_owned();
    let mut count = 0;
    for row in rows {
        let row = row.replace("\\|", "");
        let cell = row.split('|').nth(4).unwrap();
        // `files` is not available.
        if let Some(call) = cell.split('`').nth(1) {
            text += &format!("export async function task{count}() {{\n  {call};\n}}\n");
            count += 1;
        }
    }
    assert!(count > 20, "{text}");
    text
}

#[test]
fn the_code_of_the_pages_and_the_calls_of_the_tests_fit_the_types() {
    if !can_build("typescript") {
        return;
    }
    let (author, _) = built("typescript", "src/plugin.ts", &code("typescript"));
    author.write("rails/src/tasks.ts", &tasks());
    let calls = capabilities::javascript();
    author.write(
        "rails/src/calls.js",
        &format!("import {{ store }} from \"supervisor-sdk\";\n{calls}"),
    );
    // The command of the page, and then the same for JavaScript, whose functions do not declare types.
    let check = format!("npx --yes -p typescript@{TYPESCRIPT} tsc");
    let downloads = downloads().join("npm").display().to_string();
    let checked = author.shell(
        &format!("cd rails\n{check}\n{check} --allowJs --checkJs --strict false\n"),
        &[("npm_config_cache", downloads)],
    );
    checked.succeeds();
}
