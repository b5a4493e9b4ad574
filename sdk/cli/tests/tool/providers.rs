//! What plugins in other languages do for others: actions of their own, which the example `rail-panel` calls, and updates
//! of the operating system. The projects of `events.rs` contain them, because building one takes most of the time.

use plugin_test_host::{OsCall, RunningHost};
use serde_json::json;

use crate::author::Author;
use crate::languages::can_build;

/// Performs actions with the names of those of `examples/acme-rails`, and updates an operating system that the store stands
/// for.
const JAVASCRIPT: &str = r#"
import { caller, flag, NotFound, text, Unavailable } from "supervisor-sdk";

export async function list() {
  return [{ name: "5v", on: (await store.getJson("5v")) ?? false }];
}

export async function set({ json }) {
  const { name, on } = json({ name: text(), on: flag() });
  if (name === "odd") throw new Error("no such rail");
  if (name !== "5v") throw new NotFound(`there is no rail \`${name}\``);
  await store.setJson(name, on);
  return caller.current().plugin;
}

export const slots = {
  async status() {
    return { running: "1.0", committed: true, staged: await store.getText("staged"), installing: 7 };
  },
  async stage(source, version) {
    if (version === "odd") throw new Unavailable(`\`${source}\` is not reached`);
    await store.set("staged", version);
  },
  async activate() {
    if ((await store.getText("staged")) === undefined) throw new Error("nothing is staged");
  },
  async commit() {},
  async rollBack() {
    await store.delete("staged");
  },
};
"#;

const PYTHON: &str = r#"

from dataclasses import dataclass

from supervisor_sdk import Caller, NotFound, Unavailable
from supervisor_sdk.os_update import Provider, Status


@dataclass
class Rail:
    name: str
    on: bool


async def list_rails():
    return [Rail("5v", await store.get("5v") == b"True")]


async def set_rail(rail: Rail, caller: Caller):
    if rail.name == "odd":
        raise RuntimeError("no such rail")
    if rail.name != "5v":
        raise NotFound(f"there is no rail `{rail.name}`")
    await store.set(rail.name, str(rail.on))
    return caller.plugin


class Slots(Provider):
    async def status(self):
        staged = await store.get("staged")
        return Status("1.0", committed=True, staged=staged and staged.decode(), installing=7)

    async def stage(self, source: str, version: str):
        if version == "odd":
            raise Unavailable(f"`{source}` is not reached")
        await store.set("staged", version)

    async def activate(self):
        if await store.get("staged") is None:
            raise RuntimeError("nothing is staged")

    async def commit(self): ...

    async def roll_back(self):
        await store.delete("staged")
"#;

const C: &str = r#"

#include <string.h>

#include "action_provider.h"
#include "os_update.h"

output_t list_rails(input_t input) {
    (void)input;
    store_value_t on;
    if (!store_get("5v", &on)) return output_errorf("%s", store_error());
    return output_textf("[{\"name\":\"5v\",\"on\":%s}]", on.bytes != NULL ? on.bytes : "false");
}

output_t set_rail(input_t input) {
    if (strstr(input.bytes, "\"odd\"") != NULL) abort();
    const char *name = strstr(input.bytes, "\"name\":\"5v\"");
    if (name == NULL) return output_errorf("there is no rail in `%s`", input.bytes);
    if (!store_set("5v", store_textf("%s", strstr(input.bytes, "true") ? "true" : "false"))) {
        return output_errorf("%s", store_error());
    }
    plugin_string_t caller;
    if (!platform_supervisor_caller_plugin(&caller)) return output_bytes("null", 4);
    return output_textf("\"%s\"", json_escaped(text_of(caller)));
}

static os_status_result_t read_status(void) {
    store_value_t staged;
    if (!store_get("staged", &staged)) return os_status_errorf("%s", store_error());
    return os_status((os_status_t){
        .running = "1.0", .committed = true, .staged = staged.bytes, .installing = &(uint8_t){7}});
}

static os_result_t stage(const char *source, const char *version) {
    if (strcmp(version, "odd") == 0) return os_errorf("`%s` is not reached", source);
    return store_set("staged", store_textf("%s", version)) ? os_done() : os_errorf("%s", store_error());
}

static os_result_t activate(void) {
    store_value_t staged;
    if (!store_get("staged", &staged) || staged.bytes == NULL) abort();
    return os_done();
}

static os_result_t commit(void) {
    return os_done();
}

static os_result_t roll_back(void) {
    return store_delete("staged") ? os_done() : os_errorf("%s", store_error());
}

const os_updater_t slots = {
    .status = read_status, .stage = stage, .activate = activate, .commit = commit, .roll_back = roll_back};
"#;

const GO: &str = r#"
type rail struct {
	Name string `json:"name"`
	On   bool   `json:"on"`
}

func listRails([]byte) ([]rail, error) {
	on, err := store.Get("5v")
	return []rail{{"5v", string(on) == "true"}}, err
}

func setRail(rail rail) ([]byte, error) {
	switch rail.Name {
	case "odd":
		panic("no such rail")
	case "5v":
	default:
		return nil, supervisor.NotFound("there is no rail `%s`", rail.Name)
	}
	by := caller.Plugin()
	return []byte(strconv.Quote(by.Some())), store.Set(rail.Name, []byte(strconv.FormatBool(rail.On)))
}

type slots struct{}

func (slots) Status() (osupdate.Status, error) {
	staged, err := store.Get("staged")
	return osupdate.Status{Running: "1.0", Committed: true, Staged: string(staged), Installing: osupdate.Percent(7)}, err
}

func (slots) Stage(source, version string) error {
	if version == "odd" {
		return supervisor.Unavailable("`%s` is not reached", source)
	}
	return store.Set("staged", []byte(version))
}

func (slots) Activate() error {
	staged, err := store.Get("staged")
	if err == nil && staged == nil {
		panic("nothing is staged")
	}
	return err
}

func (slots) Commit() error { return nil }

func (slots) RollBack() error { return store.Delete("staged") }
"#;

/// Returns the part of a plugin's source in this language.
pub(crate) fn source(language: &str) -> String {
    match language {
        "c" => C.to_owned(),
        "go" => GO.to_owned(),
        "javascript" => JAVASCRIPT.to_owned(),
        "typescript" => typescript(),
        _ => PYTHON.to_owned(),
    }
}

/// Returns the part in TypeScript, with the types that the compiler demands.
pub(crate) fn typescript() -> String {
    JAVASCRIPT
        .replace("import {", "import { type ActionInput,")
        .replace("set({ json })", "set({ json }: ActionInput)")
        .replace(
            "stage(source, version)",
            "stage(source: string, version: string)",
        )
}

/// Returns the end of `[provides]` in `plugin.toml`, and the tables after it.
pub(crate) fn declarations(language: &str) -> &'static str {
    match language {
        "c" => "os-update = \"slots\"\n\n[actions]\nlist = \"list_rails\"\nset = \"set_rail\"\n",
        "go" => "os-update = \"slots\"\n\n[actions]\nlist = \"listRails\"\nset = \"setRail\"\n",
        "javascript" | "typescript" => {
            "os-update = \"slots\"\n\n[actions]\nlist = \"list\"\nset = \"set\"\n"
        }
        _ => "os-update = \"Slots\"\n\n[actions]\nlist = \"list_rails\"\nset = \"set_rail\"\n",
    }
}

/// The end of the plugin's section in the policy, and the section of `rail-panel`.
pub(crate) const POLICY: &str = "provides = [\"os-update\", \"identify\", \"boot-config\", \"proxy-redirector\"]\n[plugins.rail-panel]\ngrants = [\"actions\"]\nactions = [\"acme-rails/list\", \"acme-rails/set\"]\n";

/// Calls the plugin's actions, on a device that also has `rail-panel`.
pub(crate) async fn check(host: &RunningHost) {
    let rails = async || host.get("/v3/rail-panel").await.json();
    assert_eq!(rails().await, json!([{ "name": "5v", "on": false }]));
    let answer = host.post("/v3/rail-panel/5v/on", json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json(), json!({ "switchedBy": "rail-panel" }));
    assert_eq!(rails().await, json!([{ "name": "5v", "on": true }]));

    // An error is the plugin's refusal; a bug is its failure.
    for (rail, status, expected) in [
        ("12v", 409_u16, "there is no rail"),
        ("odd", 502, "plugin `acme-rails` failed: "),
    ] {
        let path = format!("/v3/rail-panel/{rail}/on");
        let answer = host.post(&path, json!({})).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(answer.text().contains(expected), "{}", answer.text());
    }
    updates(host).await;
}

async fn updates(host: &RunningHost) {
    let stage = |version: &str| OsCall::Stage {
        source: "/bundle".to_owned(),
        version: version.to_owned(),
    };
    let status = host.os_status().await.unwrap();
    assert_eq!((&*status.running, status.staged), ("1.0", None));
    assert_eq!((status.committed, status.installing), (true, Some(7)));
    for (call, expected) in [
        (OsCall::Activate, "plugin `acme-rails` failed: "),
        (stage("odd"), "`/bundle` is not reached"),
    ] {
        let error = host.update_os(call).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for (call, staged) in [
        (stage("2.0"), Some("2.0")),
        (OsCall::Activate, Some("2.0")),
        (OsCall::Commit, Some("2.0")),
        (OsCall::RollBack, None),
    ] {
        host.update_os(call).await.unwrap();
        let status = host.os_status().await.unwrap();
        assert_eq!(status.staged.as_deref(), staged);
    }
}

/// A plugin may only do things for other plugins.
#[test]
fn a_plugin_needs_no_routes() {
    for (language, source, text, command) in [
        (
            "c",
            "plugin.c",
            "#include \"action_provider.h\"\n\noutput_t set(input_t input) {\n    return output_bytes(input.bytes, input.length);\n}\n",
            // A device accepts it too.
            "check",
        ),
        (
            "go",
            "plugin.go",
            "package main\n\nfunc set(input []byte) ([]byte, error) {\n\treturn input, nil\n}\n",
            "build",
        ),
        (
            "javascript",
            "plugin.js",
            "export const set = ({ bytes }) => bytes;\n",
            "build",
        ),
    ] {
        if can_build(language) {
            let author = Author::with_project(language);
            let project = author.read("rails/plugin.toml");
            let (before, _) = project.split_once("[capabilities]").unwrap();
            let project = format!("{before}[actions]\nset = \"set\"\n");
            author.write("rails/plugin.toml", &project);
            author.write(&format!("rails/src/{source}"), text);
            author.run_in("rails", command).succeeds();
        }
    }
}
