//! Answers of other hosts and of the device's own API.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "http = \"asks\"\napi = \"asks\"\n",
    route: ("GET /v3/answers", "answers"),
    device: r#"[http."GET https://rails.example/all"]
status = 200
body = "[1]"

[api."GET /v2/rails"]
status = 404
body = "[]"
"#,
    steps: STEPS,
};

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

const STEPS: &str = r#"
[[request]]
get = "/v3/answers?of=http"
answer = { status = 200, json = { ok = true, text = "[1]", json = [1] } }

[[request]]
get = "/v3/answers?of=api"
answer = { status = 502, contains = ["the device's own API answered 404"] }
"#;
