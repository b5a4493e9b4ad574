//! The cloud's records of the device, and services on the system bus.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "cloud = \"reads the tags\"\ndbus = \"reads the meter\"\n",
    route: ("POST /v3/tags", "tags"),
    device: r#"[cloud]
device_tag = [{ id = 1, tag_key = "rack", value = "7" }]

[[dbus]]
service = "org.acme.Meter"
path = "/org/acme/Meter"
member = "org.acme.Meter.Read"
values = [{ type = "d", data = 1.5 }]

[policy]
dbus = [{ service = "org.acme.Meter", paths = ["/org/acme/Meter"], members = ["org.acme.Meter.*"] }]

"#,
    steps: STEPS,
};

const JAVASCRIPT: &str = r#"
import { cloud, dbus } from "supervisor-sdk";

export async function tags() {
  await cloud.queue("device_tag", { tag_key: "site", value: "north" });
  const rows = await cloud.records("device_tag", ["value"]);
  const method = { service: "org.acme.Meter", path: "/org/acme/Meter", interface: "org.acme.Meter", member: "Read" };
  const [level] = await dbus.call({ ...method, signature: "s", arguments: ["tank"] });
  const refused = [];
  for (const attempt of [() => cloud.records("device", ["uuid"]), () => dbus.call({ ...method, member: "Reset" })]) {
    try {
      await attempt();
    } catch (error) {
      refused.push(`${error.name}: ${error.message}`);
    }
  }
  return { rows, level, refused };
}
"#;

const PYTHON: &str = r#"

from supervisor_sdk import cloud, dbus


async def tags():
    await cloud.queue("device_tag", {"tag_key": "site", "value": "north"})
    rows = await cloud.records("device_tag", ["value"])
    meter = ("org.acme.Meter", "/org/acme/Meter", "org.acme.Meter")
    [level] = await dbus.call(*meter, "Read", "s", ["tank"])
    refused = []
    for attempt in [lambda: cloud.records("device", ["uuid"]), lambda: dbus.call(*meter, "Reset")]:
        try:
            await attempt()
        except Exception as error:
            refused.append(f"{type(error).__name__}: {error}")
    return {"rows": rows, "level": level, "refused": refused}
"#;

const STEPS: &str = r#"
[[request]]
post = "/v3/tags"
answer = { status = 200, contains = ['"rows":[{"value":"7"},{"value":"north"}]', '"level":{"data":1.5,"type":"d"}', '"Internal: ', '"BadGateway: '] }

[[cloud]]
queue = [{ kind = "device_tag", values = { tag_key = "site", value = "north" } }]
"#;
