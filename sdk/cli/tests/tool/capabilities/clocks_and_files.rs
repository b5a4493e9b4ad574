//! Parts of WASI: the clock, random numbers and files of the host.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "clock = \"dates\"\nrandom = \"keys\"\nfiles = \"reads rails\"\n",
    route: ("GET /v3/wasi", "wasi"),
    device: r#"[files]
"/run/rails/5v" = "on"

[[policy.files]]
host = "run/rails"
guest = "/rails"
"#,
    steps: STEPS,
};

const JAVASCRIPT: &str = r#"
import { files } from "supervisor-sdk";

export async function wasi() {
  const key = crypto.randomUUID();
  const before = await store.getText("key");
  await store.set("key", key);
  const rail = await files.readText("/rails/5v");
  return { isLate: Date.now() > 1_700_000_000_000, rail, isNew: key !== before };
}
"#;

const PYTHON: &str = r#"

import datetime
import secrets
import socket
import time


async def wasi():
    with open("/rails/5v") as file:
        rail = file.read()
    try:
        socket.socket()
        raise RuntimeError("there are sockets")
    except OSError:
        pass
    key = secrets.token_hex()
    before = await store.get("key")
    await store.set("key", key)
    is_late = time.time() > 1_700_000_000 and datetime.datetime.now().year > 2022
    return {"isLate": is_late, "rail": rail, "isNew": before != key.encode()}
"#;

const STEPS: &str = r#"
[[request]]
get = "/v3/wasi"
answer = { status = 200, json = { isLate = true, rail = "on", isNew = true } }

[[request]]
get = "/v3/wasi"
answer = { status = 200, json = { isLate = true, rail = "on", isNew = true } }
"#;
