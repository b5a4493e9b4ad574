//! The code of docs/plugin-tool.md, docs/plugins.md, docs/typed-actions.md and docs/os-update.md: it builds in a new project,
//! and it fits the SDK's types. `sdk/python/tests/test_documentation.py` does the same for Python.

use std::fs;

use plugin_manifest::Capability;

use crate::author::{Author, CommandOutput, downloads};
use crate::capabilities;
use crate::languages::can_build;
use crate::{providers, typed_actions};

const PAGE: &str = include_str!("../../../../docs/plugin-tool.md");
const TASKS: &str = include_str!("../../../../docs/plugins.md");
const OS_UPDATE: &str = include_str!("../../../../docs/os-update.md");
const TYPED_ACTIONS: &str = include_str!("../../../../docs/typed-actions.md");
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
  actions, api, caller, cloud, config, dbus, device, files, gpio, hostName, http, i2c, identify, journal, led, log,
  metrics, proxyRedirector, report, serial, store, timer, units, updateLock,
} from "supervisor-sdk";

declare const url: string, path: string, service: string, name: string, member: string, rail: object;

"#;

/// Compares what the plugin of a test provides with the SDK's types.
const PROVIDED: &str = r#"import { type Action, type OsUpdateProvider, store } from "supervisor-sdk";

export const actions: Action[] = [list, set];
export const updater: () => OsUpdateProvider = () => slots;

"#;

/// What the source of the typed actions uses of the rest of its plugin.
const TYPED_IMPORTS: &str = "import { store, Unavailable } from \"supervisor-sdk\";\n";

/// The same in Rust: a plugin without these calls, and the variables of a function around one.
const RUST_TASKS: &str = "use std::time::Duration;

use serde::{Deserialize, Serialize};
use supervisor_sdk::dbus::MethodCall;
use supervisor_sdk::serial::{Port, Settings};
use supervisor_sdk::update_lock::AllLocks;
use supervisor_sdk::{
    Error, Response, actions, api, cloud, config, device, folder, gpio, host_name, http, i2c, identify, journal, led,
    log, metrics, plugin, proxy_redirector, report, store, timer, units,
};

plugin! {}

#[derive(Serialize)]
struct Rail;

#[derive(Deserialize)]
struct Tag {
    value: String,
}

#[derive(Deserialize)]
struct Config {}

async fn hello() {}

";
const RUST_VARIABLES: &str = r#"    let (url, service, path, interface, member) = ("", "", "", "", "");
    let (rail, values) = (Rail, [("site".to_owned(), "north".to_owned())]);
"#;

/// The same in Go.
const GO_TASKS: &str = r#"package main

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"time"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor/config"
	actions "supervisor/imports/platform_supervisor_actions"
	api "supervisor/imports/platform_supervisor_api"
	caller "supervisor/imports/platform_supervisor_caller"
	cloud "supervisor/imports/platform_supervisor_cloud"
	dbus "supervisor/imports/platform_supervisor_dbus"
	device "supervisor/imports/platform_supervisor_device"
	gpio "supervisor/imports/platform_supervisor_gpio"
	hostname "supervisor/imports/platform_supervisor_host_name"
	http "supervisor/imports/platform_supervisor_http"
	i2c "supervisor/imports/platform_supervisor_i2c"
	identify "supervisor/imports/platform_supervisor_identify"
	journal "supervisor/imports/platform_supervisor_journal"
	led "supervisor/imports/platform_supervisor_led"
	metrics "supervisor/imports/platform_supervisor_metrics"
	proxy "supervisor/imports/platform_supervisor_proxy_redirector"
	report "supervisor/imports/platform_supervisor_report"
	serial "supervisor/imports/platform_supervisor_serial"
	units "supervisor/imports/platform_supervisor_units"
	updatelock "supervisor/imports/platform_supervisor_update_lock"
	"supervisor/log"
	"supervisor/store"
	"supervisor/timer"
)

var (
	url, path, service, name, member, input string
	rail, settings                          struct{}
)

"#;

/// The same in C.
const C_TASKS: &str = r#"#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "store.h"

long volts;
bool is_set;
size_t count;
uint8_t key[16];
const char *const *keys;
store_value_t value, expected;
union { char bytes[256]; } error;
plugin_string_t name, json, reason, unit;
plugin_list_string_t names, fields;
plugin_list_u8_t bytes, output;
plugin_list_tuple2_string_string_t values;
platform_supervisor_api_request_t api_request;
platform_supervisor_api_response_t api_response;
platform_supervisor_caller_caller_scope_t scope;
platform_supervisor_dbus_method_call_t method_call;
platform_supervisor_device_device_identity_t identity;
platform_supervisor_http_request_t request;
platform_supervisor_http_response_t response;
platform_supervisor_journal_options_t options;
platform_supervisor_journal_stream_u8_t stream;
platform_supervisor_led_own_light_t light;
platform_supervisor_metrics_list_label_t labels;
platform_supervisor_proxy_redirector_proxy_state_t proxy_state;
platform_supervisor_report_field_value_t field;
platform_supervisor_serial_own_port_t port;
platform_supervisor_serial_settings_t settings;
platform_supervisor_units_unit_state_t unit_state;
platform_supervisor_update_lock_own_lock_t lock;

static store_value_t one_more(store_value_t before, void *context) {
    (void)context;
    return before;
}

"#;

/// The device of the code that uses hardware, other machines and other plugins.
const DEVICE: &str = r#"
[gpio]
relay = { direction = "out" }

[leds.ACT]
max = 255

[http]
"GET https://api.weather.example/now" = { status = 200, body = "21.5" }

[api]
"GET /v2/state/status" = { body = '{"appState":"applied"}' }
"#;

/// What that code does there. The device has no other plugin.
const STEPS: &str = r#"
[[request]]
post = "/v3/doors/front"
answer = { status = 200, body = "open\n" }

[[gpio]]
expect = { relay = true }

[[metrics]]
counters = { 'openings_total{door="front"}' = 1 }

[[request]]
get = "/v3/weather"
answer = { status = 200, body = "21.5" }

[[request]]
post = "/v3/fill"
answer = { status = 200, body = "filled\n" }

[[report]]
fields = { level = { value = 63.5, unit = "%" } }

[[request]]
get = "/v3/api-status"
answer = { status = 200, body = '{"appState":"applied"}' }

[[request]]
post = "/v3/supply"
answer = { status = 503, contains = ["acme-rails/set"] }
"#;

/// Returns a page's blocks of code in a language.
fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1);
    blocks
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect()
}

/// Returns a project that consists of the page's code.
fn project(language: &str, source: &str, text: &str) -> Author {
    let author = Author::with_project(language);
    author.write(&format!("rails/{source}"), text);
    let action = if language == "c" {
        "set_rail"
    } else {
        "setRail"
    };
    let providers = match language {
        "c" => {
            "os-update = \"slots\"\nidentify = \"blink\"\nboot-config = \"firmware\"\nproxy-redirector = \"redirector\"\n"
        }
        "go" => {
            "os-update = \"Slots\"\nidentify = \"blink\"\nboot-config = \"firmware\"\nproxy-redirector = \"redirector\"\n"
        }
        _ => "",
    };
    let provides = format!(
        "[provides]\nevents = \"watch\"\n{providers}\n[actions]\nset = \"{action}\"\n\n[capabilities]\n"
    );
    for (from, to) in [
        ("= \"hello\"", "= \"rail\""),
        ("0.1.0\"\n", "0.1.0\"\nevents = [\"update-gate\"]\n"),
        ("[capabilities]\n", &provides),
    ] {
        author.edit("rails/plugin.toml", from, to);
    }
    author
}

/// Adds what the code asks for that uses hardware, other machines and other plugins, and runs it. `open` is the
/// function that opens a door, and `api_status` the one that answers with the device's state.
fn run(author: &Author, open: &str, api_status: &str) -> CommandOutput {
    let capabilities = ["actions", "api", "gpio", "http", "led", "metrics", "report"];
    let capabilities = capabilities.map(|name| format!("{name} = \"r\"\n"));
    let capabilities = format!("[capabilities]\n{}", capabilities.concat());
    author.edit("rails/plugin.toml", "[capabilities]\n", &capabilities);
    let routes = format!(
        "[routes]\n\"POST /v3/doors/:name\" = \"{open}\"\n\"GET /v3/weather\" = \"weather\"\n\
         \"POST /v3/supply\" = \"supply\"\n\"POST /v3/fill\" = \"fill\"\n\"GET /v3/api-status\" = \"{api_status}\"\n"
    );
    author.edit("rails/plugin.toml", "[routes]\n", &routes);
    author.write("rails/device.toml", DEVICE);
    author.write("rails/test/hello.toml", STEPS);
    let printed = author.run_in("rails", "test").succeeds();
    assert!(
        printed.out.contains("8 passed, 0 failed"),
        "{}",
        printed.out
    );
    printed
}

#[test]
fn the_code_of_the_page_builds_and_runs_in_c() {
    if can_build("c") {
        let pages = [PAGE, OS_UPDATE, TYPED_ACTIONS];
        let code = pages.map(|page| blocks(page, "c")).concat();
        let author = project("c", "src/plugin.c", &code.join("\n"));
        let printed = run(&author, "open_door", "api_status");
        assert!(!printed.err.contains("warning"), "{}", printed.err);
    }
}

#[test]
fn the_code_of_the_page_builds_and_runs_in_go() {
    if !can_build("go") {
        return;
    }
    // A block that imports packages is a file of its own.
    let (files, parts): (Vec<_>, Vec<_>) = blocks(PAGE, "go")
        .into_iter()
        .partition(|block| block.starts_with("import ("));
    let text = format!("{GO_IMPORTS}{}", parts.join("\n"));
    let author = project("go", "src/plugin.go", &text);
    assert_eq!(files.len(), 2, "{files:?}");
    for (index, file) in files.iter().enumerate() {
        author.write(
            &format!("rails/src/imports{index}.go"),
            &format!("package main\n\n{file}"),
        );
    }
    for (index, block) in [blocks(OS_UPDATE, "go"), blocks(TYPED_ACTIONS, "go")]
        .concat()
        .iter()
        .enumerate()
    {
        let file = format!("rails/src/provider{index}.go");
        author.write(&file, &format!("package main\n\n{block}"));
    }
    run(&author, "open", "apiStatus");
}

/// Returns the block that follows the marker `<!-- name -->`.
fn marked<'a>(page: &'a str, name: &str, language: &str) -> &'a str {
    let begin = format!("<!-- {name} -->\n```{language}\n");
    let (_, rest) = page.split_once(&begin).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_code_of_the_pages_builds_in_a_new_project_in_rust() {
    let author = Author::new();
    // Another name than in other tests: projects of one name would replace each other's component in the target folder.
    author.new_project("pages");
    author.write("pages/src/lib.rs", &tasks_in_rust());
    author.run_in("pages", "build").succeeds();

    fs::remove_file(author.path("pages/test/hello.toml")).unwrap();
    for (page, name) in [
        (TASKS, "own-action"),
        (TASKS, "events"),
        (OS_UPDATE, "os-update"),
    ] {
        let declaration = marked(page, &format!("{name}-project"), "toml");
        author.write("pages/plugin.toml", declaration);
        author.write("pages/src/lib.rs", marked(page, name, "rust"));
        author.run_in("pages", "build").succeeds();
    }
}

/// Returns the rows of one of the page's tables of tasks.
fn task_rows(table: usize) -> Vec<&'static str> {
    let (_, section) = TASKS.split_once("\n## Tasks\n").unwrap();
    let table = section.split("\n| Task |").nth(table + 1).unwrap();
    let rows = table.lines().take_while(|line| !line.is_empty());
    // After the rest of the head, and the line below it.
    rows.skip(2).collect()
}

/// Returns the cells of a column of such a table, each up to the end of its first piece of code; `None` for one without
/// code.
fn task_calls(table: usize, column: usize) -> Vec<Option<String>> {
    let calls = task_rows(table).into_iter().map(|row| {
        // A bar within a cell is escaped.
        let row = row.replace("\\|", "\0");
        let cell = row.split('|').nth(column).unwrap();
        cell.split('`').nth(1).map(|call| call.replace('\0', "|"))
    });
    let calls: Vec<_> = calls.collect();
    assert!(calls.len() > 30, "{calls:?}");
    calls
}

#[test]
fn all_languages_have_the_same_tasks() {
    let tasks = |table| {
        let rows = task_rows(table).into_iter();
        rows.map(|row| row.split('|').nth(1).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(tasks(0), tasks(1));
    // In Rust, a package of others takes the place of a call.
    for (table, column) in [(0, 4), (0, 5), (1, 2), (1, 3)] {
        let calls = task_calls(table, column);
        assert!(calls.iter().all(Option::is_some), "{calls:?}");
    }
}

/// Returns an author whose project may use all capabilities.
fn author_with_all_capabilities(language: &str) -> Author {
    let author = Author::with_project(language);
    let all = Capability::all().iter();
    let lines = all.filter(|capability| capability.is_for_manifests());
    let lines: String = lines.map(|name| format!("{name} = \"r\"\n")).collect();
    author.edit(
        "rails/plugin.toml",
        "store = \"counts the calls\"\n",
        &lines,
    );
    author
}

#[test]
fn the_calls_of_the_table_build_in_go() {
    if !can_build("go") {
        return;
    }
    let mut text = GO_TASKS.to_owned();
    for (index, call) in task_calls(1, 2).iter().flatten().enumerate() {
        let call = call.replace('…', "return n");
        text += &format!("func task{index}() {{\n\t{call}\n}}\n");
    }
    let author = author_with_all_capabilities("go");
    author.write("rails/src/tasks.go", &text);
    author.run_in("rails", "build").succeeds();
}

#[test]
fn the_calls_of_the_table_build_in_c() {
    if !can_build("c") {
        return;
    }
    let mut text = C_TASKS.to_owned();
    for (index, call) in task_calls(1, 3).iter().flatten().enumerate() {
        // Each capability has a type of errors.
        let call = call.replace("&error", "(void *)&error");
        text += &format!("void task{index}(void) {{\n    {call};\n}}\n");
    }
    let author = author_with_all_capabilities("c");
    author.write("rails/src/tasks.c", &text);
    let built = author.run_in("rails", "build").succeeds();
    // Such as one about the type of an argument.
    assert!(!built.err.contains("warning"), "{}", built.err);
}

/// Returns functions with the calls for JavaScript and TypeScript.
fn tasks_in_typescript() -> String {
    let mut text = TASK_IMPORTS.to_owned();
    for (index, call) in task_calls(0, 4).iter().flatten().enumerate() {
        text += &format!("export async function task{index}() {{\n  {call};\n}}\n");
    }
    text
}

/// Returns a plugin with a function for each call for Rust.
fn tasks_in_rust() -> String {
    let mut text = RUST_TASKS.to_owned();
    for (index, call) in task_calls(0, 3).iter().flatten().enumerate() {
        // The caller is an argument of the handler.
        if call != "Caller" {
            text += &format!(
                "async fn task{index}() -> Result<(), Error> {{\n{RUST_VARIABLES}    {call};\n    Ok(())\n}}\n"
            );
        }
    }
    text
}

#[test]
fn the_code_of_the_pages_and_the_calls_of_the_tests_fit_the_types() {
    if !can_build("typescript") {
        return;
    }
    let code = blocks(PAGE, "typescript").join("\n");
    let author = project("typescript", "src/plugin.ts", &code);
    author.run_in("rails", "build").succeeds();
    author.write("rails/src/tasks.ts", &tasks_in_typescript());
    for (index, block) in [
        blocks(OS_UPDATE, "typescript"),
        blocks(TYPED_ACTIONS, "typescript"),
    ]
    .concat()
    .iter()
    .enumerate()
    {
        author.write(&format!("rails/src/provider{index}.ts"), block);
    }
    let provider = providers::typescript();
    author.write("rails/src/provider.ts", &format!("{PROVIDED}{provider}"));
    let typed = typed_actions::typescript();
    author.write("rails/src/typed.ts", &format!("{TYPED_IMPORTS}{typed}"));
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
