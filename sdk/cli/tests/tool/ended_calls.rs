//! Mistakes that end a call: a clock or a file for which the plugin does not ask, a plugin that ends itself, a failed assertion,
//! endless recursion. In each language, the error says what failed and what to do, and names the place in the author's file if
//! the language has one.

use std::fmt::Write as _;

use crate::author::Author;
use crate::languages::can_build;

const READS: &str = "the plugin reads a clock without asking for it: add `clock = \"why\"` to [capabilities] of plugin.toml";
const ENDED: &str = "the plugin ended itself with status 3; return an error instead";

/// Returns an author of a plugin that needs no capability, whose source is this text.
fn author_of(language: &str, source: &str, text: &str) -> Author {
    let author = Author::with_project(language);
    author.edit("rails/plugin.toml", "store = \"counts the calls\"\n", "");
    author.write(&format!("rails/{source}"), text);
    author
}

/// Returns the place of the only line of a text that contains another one, as an error names it.
fn place(source: &str, text: &str, part: &str) -> String {
    let mut lines = text.lines();
    let line = lines.position(|line| line.contains(part)).unwrap() + 1;
    format!("{source}:{line}")
}

/// Calls `/v3/rails/NAME` for each name. The answer is a failure with all of these texts, or without texts a success. Returns
/// what the tool has printed for people.
fn calls(author: &Author, expected: &[(&str, &[&str])]) -> String {
    let mut steps = String::new();
    for (name, texts) in expected {
        let _ = write!(steps, "[[request]]\nget = \"/v3/rails/{name}\"\nanswer = ");
        let _ = match texts {
            [] => writeln!(steps, "{{ status = 200 }}"),
            _ => {
                // As in the JSON of the answer.
                let texts = texts.iter().map(|text| text.replace('"', "\\\""));
                let texts: Vec<String> = texts.collect();
                writeln!(steps, "{{ status = 500, contains = {texts:?} }}")
            }
        };
    }
    author.write("rails/test/hello.toml", &steps);
    let passed = author.run_in("rails", "test").succeeds();
    let count = format!("{} passed, 0 failed", expected.len());
    assert!(passed.out.contains(&count), "{}", passed.out);
    passed.err
}

/// Makes the plugin ask for a clock.
fn ask_for_clock(author: &Author) {
    let asks = "[capabilities]\nclock = \"dates\"\n";
    author.edit("rails/plugin.toml", "[capabilities]\n", asks);
}

const C: &str = r#"#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "supervisor.h"

typedef struct {
    void (*abort)(int status);
} board_t;

static int sum = 0;

// It runs before the call.
__attribute__((constructor)) static void begin(void) {
    sum = time(NULL) == 1;
}

static void add(int status) {
    sum += status;
}

__attribute__((noinline)) static int deep(volatile int depth) {
    volatile char room[64];
    room[depth % 64] = 1;
    return depth < 0 ? 0 : deep(depth + 1) + room[0];
}

void hello(request_t *request) {
    const char *name = param(request, "name");
    board_t board = {add};
    if (strcmp(name, "time") == 0) sum = (int)time(NULL);
    if (strcmp(name, "sleep") == 0) sum = (int)sleep(0);
    if (strcmp(name, "assert") == 0) assert(sum == 1);
    if (strcmp(name, "abort") == 0) abort();
    if (strcmp(name, "trap") == 0) __builtin_trap();
    if (strcmp(name, "exit") == 0) exit(3);
    if (strcmp(name, "deep") == 0) sum = deep(0);
    if (strcmp(name, "pointer") == 0) sum = *(volatile int *)0x7ffffff0;
    if (strcmp(name, "member") == 0) board.abort(1);
    if (strcmp(name, "twice") == 0) answer_textf(request, "one");
    // What a function returns that has failed.
    if (strcmp(name, "length") == 0) answer(request, TEXT, name, (size_t)-1);
    if (strcmp(name, "status") == 0) set_status(request, 65736);
    if (strcmp(name, "error") == 0) answer_errorf(request, -1, "no");
    if (strcmp(name, "piece") == 0) stream_write(NULL, name, (size_t)-2);
    answer_textf(request, "%d", sum);
}
"#;

#[test]
fn a_call_of_a_plugin_in_c_says_which_mistake_has_ended_it() {
    if !can_build("c") {
        return;
    }
    let source = "src/plugin.c";
    let author = author_of("c", source, C);
    let assertion = format!(
        "the assertion `sum == 1` is false in `hello` ({})",
        place(source, C, "assert(")
    );
    let aborted = format!(
        "`abort` is called in `hello` ({})",
        place(source, C, " abort()")
    );
    let waits = "use `platform_supervisor_timer_sleep`, which needs no capability, or add `clock = \"why\"`";
    let trapped = "failed: wasm trap: wasm `unreachable` instruction executed, probably because it called `abort` or a check of \
                   its language failed, in `hello`";
    let always: [(&str, &[&str]); 13] = [
        ("constructor", &[]),
        ("assert", &[&assertion]),
        ("abort", &[&aborted]),
        ("trap", &[trapped]),
        ("exit", &[ENDED]),
        (
            "deep",
            &["probably because its stack overflowed or it used an invalid pointer, in `deep`"],
        ),
        ("pointer", &["or it used an invalid pointer, in `hello`"]),
        ("twice", &["the plugin answers `GET /v3/rails/:name` twice"]),
        ("length", &["`answer` is called with the length -1: check"]),
        (
            "piece",
            &["`stream_write` is called with the length -2: check"],
        ),
        (
            "status",
            &["`set_status` is called with 65736, which is not a status"],
        ),
        (
            "error",
            &["`answer_errorf` is called with -1, which is not a status"],
        ),
        ("member", &[]),
    ];
    let clocks: [(&str, &[&str]); 2] = [("time", &[READS]), ("sleep", &[waits])];
    calls(&author, &[&clocks[..], &always].concat());
    // Then they come from the adapter to WASI 0.2.
    ask_for_clock(&author);
    let clocks: [(&str, &[&str]); 2] = [("time", &[]), ("sleep", &[])];
    calls(&author, &[&clocks[..], &always].concat());
}

const RUST: &str = r#"//! A plugin that ends itself.

use supervisor_sdk::{Path, plugin};

plugin! {}

#[inline(never)]
fn end(status: i32) -> ! {
    std::process::exit(status)
}

async fn hello(name: Path<String>) -> String {
    if name.0 == "exit" {
        end(3);
    }
    name.0
}
"#;

#[test]
fn a_call_of_a_plugin_in_rust_names_the_function_that_has_ended_it() {
    let author = Author::new();
    author.new_project("rails");
    author.edit("rails/plugin.toml", "store = \"counts the calls\"\n", "");
    author.write("rails/src/lib.rs", RUST);
    let ended = "it ended itself (`process::exit`); return an error instead, in `rails::end`";
    calls(&author, &[("exit", &[ended]), ("other", &[])]);
}

const GO: &str = r#"package main

import (
	"os"

	"supervisor"
)

func deep(n int) int {
	return 1 + deep(n+1)
}

func hello(r *supervisor.Request) (*supervisor.Response, error) {
	switch r.Param("name") {
	case "exit":
		defer func() { recover() }()
		os.Exit(3)
	case "deep":
		return supervisor.Textf("%d", deep(0)), nil
	case "status":
		answer := supervisor.Text("it goes on")
		answer.Status = 1<<16 + 200
		return answer, nil
	case "error":
		return nil, &supervisor.Error{Status: 404 - 1<<16, Message: "no such rail"}
	}
	return supervisor.Text("it goes on"), nil
}
"#;

#[test]
fn a_call_of_a_plugin_in_go_says_which_mistake_has_ended_it() {
    if !can_build("go") {
        return;
    }
    let author = author_of("go", "src/plugin.go", GO);
    let deep =
        "wasm trap: call stack exhausted, probably because of endless recursion, in `main.deep`";
    let status =
        |status: i32| format!("the status of an answer is {status}, which is not from 0 to 65535");
    let (too_high, negative) = (status(65_736), status(-65_132));
    let expected: [(&str, &[&str]); 5] = [
        ("exit", &[ENDED]),
        ("deep", &[deep]),
        ("status", &[&too_high]),
        ("error", &[&negative]),
        ("other", &[]),
    ];
    calls(&author, &expected);
    ask_for_clock(&author);
    calls(&author, &expected);
}

const JAVASCRIPT: &str = r#"const atImport = [new Date(), Date.now(), performance.now()];

function deep(depth) {
  return 1 + deep(depth + 1);
}

export async function hello({ params }) {
  switch (params.name) {
    case "date":
      return String(new Date());
    case "now":
      return String(Date.now());
    case "performance":
      return String(performance.now());
    case "own":
      return new Date(0).toISOString();
    case "deep":
      return String(deep(0));
  }
  return String(atImport);
}
"#;

#[test]
fn a_call_of_a_plugin_in_javascript_says_which_mistake_has_ended_it() {
    if !can_build("javascript") {
        return;
    }
    let source = "src/plugin.js";
    let author = author_of("javascript", source, JAVASCRIPT);
    let [date, now, performance] = ["String(new Date", "String(Date", "String(perf"]
        .map(|part| place(source, JAVASCRIPT, part));
    let deep = "wasm trap: call stack exhausted, probably because of endless recursion";
    let printed = calls(
        &author,
        &[
            ("date", &[READS, &date]),
            ("now", &[READS, &now]),
            ("performance", &[READS, &performance]),
            ("own", &[]),
            ("deep", &[deep]),
            ("import", &[]),
        ],
    );
    let warning = format!(
        "warning: `new Date()` is used in {date}, but [capabilities] in plugin.toml does not ask for `clock`, without which it is \
         an error in a call: add `clock = \"why\"`\n"
    );
    assert!(printed.contains(&warning), "{printed}");

    ask_for_clock(&author);
    let names = ["date", "now", "performance", "own", "import"];
    let printed = calls(&author, &names.map(|name| (name, &[][..])));
    assert!(!printed.contains("warning"), "{printed}");
}

const PYTHON: &str = r#"import asyncio
import datetime
import os
import sys
import time

AT_IMPORT = [time.time(), datetime.datetime.now(), datetime.date.today(), os.path.exists("/1")]


async def hello(name: str):
    match name:
        case "time":
            return f"{time.time()}"
        case "monotonic":
            return f"{time.monotonic()}"
        case "now":
            return f"{datetime.datetime.now()}"
        case "utcnow":
            return f"{datetime.datetime.utcnow()}"
        case "today":
            return f"{datetime.date.today()}"
        case "sleep":
            time.sleep(0.001)
        case "asyncio":
            await asyncio.sleep(0.001)
        case "limit":
            await asyncio.wait_for(asyncio.sleep(0), 1)
        case "open":
            return open("/etc/hostname").read()
        case "listdir":
            return f"{os.listdir('/etc')}"
        case "exit":
            sys.exit(3)
        case "raise":
            raise SystemExit
        case "others":
            await asyncio.sleep(0)
            return f"{os.path.exists('/etc')} {datetime.datetime.fromtimestamp(0)}"
    return f"{AT_IMPORT}"
"#;

#[test]
fn a_call_of_a_plugin_in_python_says_which_mistake_has_ended_it() {
    if !can_build("python") {
        return;
    }
    let source = "src/plugin.py";
    let author = author_of("python", source, PYTHON);
    let at = |part: &str| format!("at hello ({})", place(source, PYTHON, part));
    let timer = "use `await timer.sleep(SECONDS)` of `supervisor_sdk`, which needs no capability";
    let or_clock = ", or add `clock = \"why\"` to [capabilities] of plugin.toml";
    let open = "the plugin calls `open` without asking for files: add `files = \"why\"` to [capabilities] of plugin.toml";
    calls(
        &author,
        &[
            ("time", &[READS, &at("f\"{time.time")]),
            ("monotonic", &[READS, &at("time.monotonic")]),
            ("now", &[READS, &at("f\"{datetime.datetime.now")]),
            ("utcnow", &[READS, &at("utcnow()")]),
            ("today", &[READS, &at("f\"{datetime.date.today")]),
            ("sleep", &[timer, or_clock, &at("time.sleep(0.001)")]),
            ("asyncio", &[timer, &at("asyncio.sleep(0.001)")]),
            ("limit", &[timer, &at("wait_for")]),
            ("open", &[open, &at("open(")]),
            (
                "listdir",
                &[
                    "the plugin calls `listdir` without asking for files",
                    &at("listdir('"),
                ],
            ),
            ("exit", &[ENDED, &at("sys.exit(3)")]),
            (
                "raise",
                &[
                    "the plugin ended itself with status 0",
                    &at("raise SystemExit"),
                ],
            ),
            ("others", &[]),
            ("import", &[]),
        ],
    );
}
