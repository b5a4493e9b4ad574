//! The device itself: what it is, its name on the network, the plugin's settings, and on whose behalf it is called.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "device = \"says which device this is\"\nhost-name = \"names the host\"\n",
    route: ("POST /v3/board", "board"),
    device: r#"[device]
name = "shelf 4"
type = "acme-2"
arch = "aarch64"
state = { status = "Idle" }

[config]
interval = 5

"#,
    steps: STEPS,
};

const JAVASCRIPT: &str = r#"
import { caller, config, device, hostName } from "supervisor-sdk";

export async function board() {
  const { name, deviceType, arch } = device.identity();
  const before = await hostName.get();
  await hostName.set("shelf-5");
  const { scope, appId, service } = caller.current();
  return {
    identity: [name, deviceType, arch],
    state: device.state(),
    config: config.read(),
    hostNames: [before ?? "none", await hostName.get()],
    caller: [scope, appId ?? 0, service ?? "none"],
    covers: [caller.covers(5), caller.covers(6)],
  };
}
"#;

const PYTHON: &str = r#"

from supervisor_sdk import Caller, config, device, host_name


async def board():
    identity = device.identity()
    before = await host_name.get()
    await host_name.set("shelf-5")
    caller = Caller.current()
    return {
        "identity": [identity.name, identity.device_type, identity.arch],
        "state": device.state(),
        "config": config.read(),
        "hostNames": [before or "none", await host_name.get()],
        "caller": [caller.scope, caller.app_id or 0, caller.service or "none"],
        "covers": [caller.covers(5), caller.covers(6)],
    }
"#;

const STEPS: &str = r#"
[[request]]
post = "/v3/board"
caller = { app = 5, service = "main" }
answer = { status = 200, json = { identity = ["shelf 4", "acme-2", "aarch64"], state = { status = "Idle" }, config = { interval = 5 }, hostNames = ["none", "shelf-5"], caller = ["service", 5, "main"], covers = [true, false] } }

[[request]]
post = "/v3/board"
answer = { status = 200, contains = ['"hostNames":["shelf-5","shelf-5"]', '"caller":["device-key",0,"none"]', '"covers":[true,true]'] }
"#;
