//! The code of docs/plugin-tool.md, docs/plugins.md and docs/os-update.md in languages other than Rust: it builds, and it
//! fits the SDK's types. `sdk/python/tests/test_documentation.py` does the same for Python.

use crate::author::{Author, CommandOutput, downloads};
use crate::capabilities;
use crate::languages::can_build;
use crate::providers;

const PAGE: &str = include_str!("../../../../docs/plugin-tool.md");
const TASKS: &str = include_str!("../../../../docs/plugins.md");
const OS_UPDATES: &str = include_str!("../../../../docs/os-update.md");
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

/// Compares what the plugin of a test provides with the SDK's types.
const PROVIDED: &str = r#"import { type Action, type OsUpdateProvider, store } from "supervisor-sdk";

export const actions: Action[] = [list, set];
export const updater: () => OsUpdateProvider = () => slots;

"#;

/// Returns a page's code in a language.
fn code(page: &str, language: &str) -> String {
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1);
    let blocks = blocks.map(|rest| rest.split_once("```").unwrap().0);
    blocks.collect::<Vec<_>>().join("\n")
}

/// Returns a project that consists of the page's code, which is built.
fn built(language: &str, source: &str, text: &str) -> (Author, CommandOutput) {
    let author = Author::with_project(language);
    author.write(&format!("rails/{source}"), text);
    let action = if language == "c" {
        "set_rail"
    } else {
        "setRail"
    };
    let provides = format!(
        "[provides]\nevents = \"watch\"\n\n[actions]\nset = \"{action}\"\n\n[capabilities]\n"
    );
    for (from, to) in [
        ("= \"hello\"", "= \"rail\""),
        ("0.1.0\"\n", "0.1.0\"\nevents = [\"update-gate\"]\n"),
        ("[capabilities]\n", &provides),
    ] {
        author.edit("rails/plugin.toml", from, to);
    }
    let printed = author.run_in("rails", "build").succeeds();
    (author, printed)
}

#[test]
fn the_code_of_the_page_builds_in_c() {
    if can_build("c") {
        let (_, printed) = built("c", "src/plugin.c", &code(PAGE, "c"));
        assert!(!printed.err.contains("warning"), "{}", printed.err);
    }
}

#[test]
fn the_code_of_the_page_builds_in_go() {
    if can_build("go") {
        built(
            "go",
            "src/plugin.go",
            &format!("{GO_IMPORTS}{}", code(PAGE, "go")),
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
    let (author, _) = built("typescript", "src/plugin.ts", &code(PAGE, "typescript"));
    author.write("rails/src/tasks.ts", &tasks());
    let updater = code(OS_UPDATES, "typescript");
    author.write("rails/src/updater.ts", &updater);
    let provider = providers::typescript();
    author.write("rails/src/provider.ts", &format!("{PROVIDED}{provider}"));
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
