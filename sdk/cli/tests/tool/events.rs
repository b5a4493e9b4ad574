//! Plugins in other languages that are called for events, act as gates, and do things for others (`providers.rs` and
//! `typed_actions.rs`): built by the tool, called by the device's runtime.

use std::time::Duration;

use plugin_test_host::{
    EmbeddedHost, GateVerdict, Host, InstalledRelease, PendingUpdate, PluginEvent, RunningHost,
    ServiceChange,
};
use tests::guest;

use crate::author::{Author, compiled_code};
use crate::languages::can_build;
use crate::{providers, typed_actions};

/// Counts the services in its events in the store, postpones updates of `press`, and refuses the release `bad`.
const JAVASCRIPT: &str = r#"
import { postpone, refuse } from "supervisor-sdk";

export async function watch(event) {
  switch (event.kind) {
    case "services":
      for (const { service, status, before } of event.changes) await store.set("seen", `${service} ${before} ${status}`);
      break;
    case "update-gate":
      if (event.update.services.includes("press")) return postpone("the press is running", 60);
      break;
    case "health-gate":
      if (event.release.commit === "bad") return refuse("it prints blank pages");
      if (event.release.commit === "new") return postpone("it warms up", 30);
      if (event.release.commit === "odd") throw new Error("no paper");
  }
}

export async function seen() {
  return (await store.getText("seen")) ?? "nothing";
}

export async function thrown() {
  throw new Error("out of paper");
}

const atImport = Math.random();

export async function numbers() {
  const values = crypto.getRandomValues(new Uint32Array(4));
  return `${Math.random()} ${crypto.randomUUID()} ${values.join()} ${atImport < 1}`;
}
"#;

const PYTHON: &str = r#"

from supervisor_sdk.events import Event, HealthGate, Postpone, Refuse, Services, UpdateGate


async def watch(event: Event):
    match event:
        case Services(changes=changes):
            for change in changes:
                await store.set("seen", f"{change.service} {change.before} {change.status}")
        case UpdateGate(services=services) if "press" in services:
            return Postpone("the press is running", seconds=60)
        case HealthGate(commit="bad"):
            return Refuse("it prints blank pages")
        case HealthGate(commit="new"):
            return Postpone("it warms up", seconds=30)
        case HealthGate(commit="odd"):
            raise RuntimeError("no paper")


async def seen():
    return (await store.get("seen") or b"nothing").decode()


async def thrown():
    raise RuntimeError("out of paper")


import random
import secrets
import uuid

at_import = random.random()


def numbers():
    return f"{random.random()} {uuid.uuid4()} {secrets.token_hex()} {at_import < 1}".lower()
"#;

const C: &str = r#"

#include "events.h"

event_answer_t watch(const event_t *event) {
    switch (event->tag) {
    case EVENT_SERVICES:
        for (size_t index = 0; index < event->val.services.len; index++) {
            const service_change_t *change = &event->val.services.ptr[index];
            const char *before = change->before.is_some ? text_of(change->before.val) : "nothing";
            const char *status = change->status.is_some ? text_of(change->status.val) : "nothing";
            char line[100];
            int length = snprintf(line, sizeof line, "%s %s %s", text_of(change->service), before, status);
            plugin_string_t key = string_of("seen");
            plugin_list_u8_t value = {(uint8_t *)line, (size_t)length};
            platform_supervisor_store_store_error_t error;
            if (!platform_supervisor_store_set(&key, &value, &error)) return failedf("cannot store `%s`", line);
        }
        return go_on();
    case EVENT_UPDATE_GATE:
        return has_service(event->val.update_gate.services, "press") ? postponef(60, "the %s is running", "press") : go_on();
    case EVENT_HEALTH_GATE: {
        plugin_string_t commit = event->val.health_gate.commit;
        if (text_is(commit, "bad")) return refusef("it prints %s pages", "blank");
        if (text_is(commit, "new")) return postponef(30, "it warms up");
        if (text_is(commit, "odd")) return failedf("no paper");
        // The time until a deadline that has passed.
        if (text_is(commit, "late")) return postponef(-1, "it is late");
        // More than 32 bits.
        if (text_is(commit, "far")) return postponef(1LL << 32, "it is far");
        return go_on();
    }
    default:
        return go_on();
    }
}

void seen(request_t *request) {
    plugin_string_t key = string_of("seen");
    plugin_option_list_u8_t found;
    platform_supervisor_store_store_error_t error;
    if (!platform_supervisor_store_get(&key, &found, &error)) abort();
    answer(request, TEXT, found.is_some ? found.val.ptr : (uint8_t *)"nothing", found.is_some ? found.val.len : 7);
}
"#;

const GO: &str = r#"
func watch(event events.Event) (events.Answer, error) {
	switch event := event.(type) {
	case events.Services:
		for _, change := range event.Changes {
			line := change.Service + " " + change.Before + " " + change.Status
			if err := store.Set("seen", []byte(line)); err != nil {
				return events.GoOn, err
			}
		}
	case events.UpdateGate:
		if slices.Contains(event.Services, "press") {
			return events.Postpone(time.Minute, "the press is running"), nil
		}
	case events.HealthGate:
		switch event.Commit {
		case "bad":
			return events.Refuse("it prints blank pages"), nil
		case "new":
			return events.Postpone(30*time.Second, "it warms up"), nil
		case "odd":
			panic("no paper")
		}
	}
	return events.GoOn, nil
}

func seen(*supervisor.Request) (*supervisor.Response, error) {
	// The time until a deadline that has passed.
	if err := store.SetFor("seen", []byte("late"), -time.Second); err == nil {
		return supervisor.Text("a value with a negative lifetime"), nil
	}
	found, err := store.Get("seen")
	return supervisor.Text(string(found)), err
}

func thrown(*supervisor.Request) (*supervisor.Response, error) {
	panic("out of paper")
}
"#;

/// A project in this language whose plugin is called for all of these events, and has actions.
fn project(author: &Author, language: &str, source: &str, more: &str) {
    author
        .run(&format!("new acme-rails --lang {language}"))
        .succeeds();
    if language == "go" {
        let [own, of_sdk] = typed_actions::GO_IMPORTS;
        author.edit(
            "acme-rails/src/plugin.go",
            "\t\"strconv\"\n",
            &format!("\t\"slices\"\n\t\"strconv\"\n\t\"time\"\n{own}"),
        );
        author.edit(
            "acme-rails/src/plugin.go",
            "\t\"supervisor\"\n",
            &format!(
                "\t\"supervisor\"\n\t\"supervisor/events\"\n\tcaller \"supervisor/imports/platform_supervisor_caller\"\n\t\"supervisor/osupdate\"\n{of_sdk}"
            ),
        );
    }
    let more = format!(
        "{more}{}{}",
        providers::source(language),
        typed_actions::source(language)
    );
    author.append(&format!("acme-rails/{source}"), &more);
    let declarations = format!(
        "{}{}",
        typed_actions::declarations(language),
        providers::declarations(language)
    );
    author.edit(
        "acme-rails/plugin.toml",
        "[capabilities]",
        &format!("[provides]\nevents = \"watch\"\n{declarations}\n[capabilities]"),
    );
    author.edit(
        "acme-rails/plugin.toml",
        "version = \"0.1.0\"",
        "version = \"0.1.0\"\nevents = [\"services\", \"update-gate\", \"health-gate\"]",
    );
    author.edit(
        "acme-rails/plugin.toml",
        "[routes]\n",
        "[routes]\n\"GET /v3/seen\" = \"seen\"\n",
    );
    // C has no exceptions.
    if language != "c" {
        author.edit(
            "acme-rails/plugin.toml",
            "[routes]\n",
            "[routes]\n\"GET /v3/thrown\" = \"thrown\"\n",
        );
    }
    if has_random(language) {
        author.edit(
            "acme-rails/plugin.toml",
            "[capabilities]\n",
            "[capabilities]\nrandom = \"r\"\n",
        );
        author.edit(
            "acme-rails/plugin.toml",
            "[routes]\n",
            "[routes]\n\"GET /v3/numbers\" = \"numbers\"\n",
        );
    }
}

/// Returns whether the plugin in this language asks for random numbers, and for no other part of WASI that its runtime
/// imports.
fn has_random(language: &str) -> bool {
    matches!(language, "javascript" | "typescript" | "python")
}

/// The component is a snapshot, so without new seeds all calls would get the same numbers.
async fn gets_other_numbers_in_each_call(host: &RunningHost) {
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let answer = host.get("/v3/numbers").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        numbers.push(answer.text().to_owned());
    }
    let both = numbers[0].split(' ').zip(numbers[1].split(' '));
    let both: Vec<_> = both.collect();
    let [a, b, c, at_import] = both[..] else {
        panic!("{numbers:?}");
    };
    assert_eq!(at_import, ("true", "true"));
    for (first, second) in [a, b, c] {
        assert_ne!(first, second, "{numbers:?}");
    }
}

/// Checks that what a handler throws is in the answer to its author, with the place in the sources. The same text is in
/// `lastError` of a device, and in its log.
fn shows_what_a_handler_throws(author: &Author, language: &str, source: &str) {
    let text = author.read(&format!("acme-rails/{source}"));
    let line = text.lines().position(|line| line.contains("out of paper"));
    let place = match language {
        "c" => return,
        // A panic in Go names no line.
        "go" => String::new(),
        _ => format!("{source}:{}", line.unwrap() + 1),
    };
    let expected = format!(
        "[[request]]\nget = \"/v3/thrown\"\nanswer = {{ status = 500, contains = [\"failed: \", \"out of paper\", {place:?}] }}\n"
    );
    author.write("acme-rails/test/hello.toml", &expected);
    let built = "test acme-rails/acme-rails.wasm --project acme-rails";
    author.run(built).succeeds();
}

/// A device with such a plugin.
async fn device(author: &Author, language: &str, source: &str, more: &str) -> RunningHost {
    project(author, language, source, more);
    author.run_in("acme-rails", "build").succeeds();
    let policy = providers::POLICY;
    let random = if has_random(language) {
        ", \"random\""
    } else {
        ""
    };
    let device = Host::new()
        .plugin(author.path("acme-rails/acme-rails.wasm"))
        .plugin(guest("rail_panel"))
        .policy(format!(
            "[plugins.acme-rails]\ngrants = [\"store\"{random}]\nevents = [\"services\", \"update-gate\", \"health-gate\"]\n{policy}"
        ));
    EmbeddedHost::new(device)
        .code_cache(compiled_code())
        .reuse_functions()
        .start()
        .await
}

fn update(service: &str) -> PendingUpdate {
    PendingUpdate {
        app_id: 7,
        app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        services: vec![service.to_owned()],
        running_commit: None,
        target_commit: Some("c2".to_owned()),
    }
}

fn release(commit: &str) -> InstalledRelease {
    InstalledRelease {
        app_id: 7,
        app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        services: vec!["press".to_owned()],
        commit: commit.to_owned(),
    }
}

async fn check(language: &str, source: &str, more: &str, nothing: &str) {
    if !can_build(language) {
        return;
    }
    let author = Author::new();
    let host = device(&author, language, source, more).await;
    shows_what_a_handler_throws(&author, language, source);
    providers::check(&host).await;
    typed_actions::check(&host).await;
    if has_random(language) {
        gets_other_numbers_in_each_call(&host).await;
    }
    assert_eq!(host.postponement(&update("oven")).await, None);
    let postponement = host.postponement(&update("press")).await.unwrap();
    assert_eq!(
        (&*postponement.reason, postponement.delay),
        ("the press is running", Duration::from_secs(60))
    );

    let verdict = host.judge_release(&release("good")).await;
    assert_eq!(verdict, GateVerdict::Healthy);
    let GateVerdict::Unhealthy { reason, .. } = host.judge_release(&release("bad")).await else {
        panic!("it is refused");
    };
    assert_eq!(reason, "it prints blank pages");
    let GateVerdict::NotYet { reason, delay, .. } = host.judge_release(&release("new")).await
    else {
        panic!("it is postponed");
    };
    assert_eq!((&*reason, delay), ("it warms up", Duration::from_secs(30)));
    // A bug in the plugin is not a verdict.
    let verdict = host.judge_release(&release("odd")).await;
    assert!(matches!(verdict, GateVerdict::NotYet { .. }), "{verdict:?}");

    host.publish(&PluginEvent::Services(vec![ServiceChange {
        app_id: 7,
        service: "press".to_owned(),
        status: Some("Running".to_owned()),
        before: None,
    }]));
    let expected = format!("press {nothing} Running");
    let deadline = tokio::time::Instant::now() + tests::DEADLINE;
    loop {
        let seen = host.get("/v3/seen").await;
        if seen.text() == expected {
            return;
        }
        let is_late = tokio::time::Instant::now() > deadline;
        assert!(!is_late, "it has seen {}", seen.text());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_plugin_in_javascript_is_called_for_events_gates_and_actions() {
    check("javascript", "src/plugin.js", JAVASCRIPT, "undefined").await;
}

#[tokio::test]
async fn a_plugin_in_typescript_is_called_for_events_gates_and_actions() {
    let typed = JAVASCRIPT
        .replace("import {", "import { type Event, type GateAnswer,")
        .replace("watch(event)", "watch(event: Event): Promise<GateAnswer>");
    check("typescript", "src/plugin.ts", &typed, "undefined").await;
}

#[tokio::test]
async fn a_plugin_in_python_is_called_for_events_gates_and_actions() {
    check("python", "src/plugin.py", PYTHON, "None").await;
}

fn in_c() -> String {
    format!("#include <stdio.h>\n#include <stdlib.h>\n{C}")
}

#[tokio::test]
async fn a_plugin_in_c_is_called_for_events_gates_and_actions() {
    check("c", "src/plugin.c", &in_c(), "nothing").await;
}

#[tokio::test]
async fn a_plugin_in_go_is_called_for_events_gates_and_actions() {
    check("go", "src/plugin.go", GO, "").await;
}

#[test]
fn a_file_of_tests_has_events_happen_between_its_requests_and_calls_typed_actions() {
    if !can_build("c") {
        return;
    }
    let author = Author::new();
    project(&author, "c", "src/plugin.c", &in_c());
    author.write(
        "acme-rails/test/hello.toml",
        r#"
[[request]]
get = "/v3/seen"
answer = { status = 200, body = "nothing" }

[[event]]
services = [{ service = "press", status = "Running" }]

[[request]]
get = "/v3/seen"
answer = { status = 200, body = "press nothing Running" }

[[event]]
update_gate = { services = ["oven"] }

[[event]]
update_gate = { services = ["press"] }
answer = { postpone = "the press is running", seconds = 60 }

[[event]]
health_gate = { commit = "bad" }
answer = { refuse = "it prints blank pages" }

[[event]]
health_gate = { commit = "new" }
answer = { postpone = "it warms up" }

[[event]]
health_gate = { commit = "late" }
answer = { postpone = "it is late", seconds = 10 }

[[event]]
health_gate = { commit = "far" }
answer = { postpone = "it is far", seconds = 900 }

[[event]]
health_gate = { commit = "good" }
"#,
    );
    let passed = author.run_in("acme-rails", "test").succeeds();
    assert!(passed.out.contains("10 passed, 0 failed"), "{}", passed.out);

    author.write(
        "acme-rails/test/hello.toml",
        "[[event]]\nupdate_gate = { services = [\"press\"] }\n\n[[event]]\nconnection = true\n",
    );
    let failed = author.run_in("acme-rails", "test").fails();
    for expected in [
        "test/hello.toml:1 event update-gate\n    expected that it goes on, got that it postpones by 60 s",
        "test/hello.toml:4 event connection\n    the plugin is not called for it: add `connection` to `events` in plugin.toml",
        "0 passed, 2 failed",
    ] {
        assert!(failed.out.contains(expected), "{}", failed.out);
    }
    typed_actions::file_of_tests_calls_them(&author);
}
