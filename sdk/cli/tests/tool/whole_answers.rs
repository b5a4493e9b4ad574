//! What plugins get from other hosts and from the device's own API.

use crate::author::Author;
use crate::languages::can_build;

const JAVASCRIPT: &str = r#"
import { api, http, text } from "supervisor-sdk";

export async function answers({ query }) {
  const { of } = query.as({ of: text() });
  const answer = of === "api" ? await api.send("/v2/rails") : await http.send("https://rails.example/all");
  return { ok: answer.ok, text: answer.text(), json: answer.json() };
}
"#;

const PYTHON: &str = r#"

from supervisor_sdk import api, http


async def answers(of: str):
    answer = await (api.send("/v2/rails") if of == "api" else http.send("https://rails.example/all"))
    return {"ok": answer.ok, "text": answer.text(), "json": answer.json()}
"#;

const TEST: &str = r#"
[[request]]
get = "/v3/answers?of=http"
answer = { status = 200, json = { ok = true, text = "[1]", json = [1] } }

[[request]]
get = "/v3/answers?of=api"
answer = { status = 502, contains = ["the device's own API answered 404"] }
"#;

fn check(language: &str, source: &str, more: &str) {
    if !can_build(language) {
        return;
    }
    let author = Author::new();
    author
        .run(&format!("new rails --lang {language}"))
        .succeeds();
    author.append(&format!("rails/{source}"), more);
    author.edit(
        "rails/plugin.toml",
        "[capabilities]\n",
        "[capabilities]\nhttp = \"asks\"\napi = \"asks\"\n",
    );
    author.edit(
        "rails/plugin.toml",
        "[routes]\n",
        "[routes]\n\"GET /v3/answers\" = \"answers\"\n",
    );
    author.write(
        "rails/device.toml",
        "[http.\"GET https://rails.example/all\"]\nstatus = 200\nbody = \"[1]\"\n\n[api.\"GET /v2/rails\"]\nstatus = 404\nbody = \"[]\"\n",
    );
    author.write("rails/test/hello.toml", TEST);
    let passed = author.run_in("rails", "test").succeeds();
    assert!(passed.out.contains("2 passed, 0 failed"), "{}", passed.out);
}

#[test]
fn a_plugin_in_javascript_reads_whole_answers() {
    check("javascript", "src/plugin.js", JAVASCRIPT);
}

#[test]
fn a_plugin_in_python_reads_whole_answers() {
    check("python", "src/plugin.py", PYTHON);
}
