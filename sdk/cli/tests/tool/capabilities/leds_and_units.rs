//! LEDs and the host's units.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "led = \"shows its state\"\nunits = \"restarts the tunnel\"\n",
    route: ("POST /v3/tunnel", "tunnel"),
    device: r#"[leds.ACT]
max = 5

[units."vpn.service"]
active = "failed"
sub = "failed"

"#,
    steps: STEPS,
};

const JAVASCRIPT: &str = r#"
import { led, units } from "supervisor-sdk";

export async function tunnel() {
  const light = led.Light.open("ACT");
  light.on();
  light.off();
  light.set(2.5);
  const max = light.max;
  const refused = [];
  for (const attempt of [() => led.Light.open("ACT"), () => led.Light.open("gone"), () => units.state("gone.service")]) {
    try {
      await attempt();
    } catch (error) {
      refused.push(error.name);
    }
  }
  light.close();
  led.Light.open("ACT").close();
  const before = await units.state("vpn.service");
  await units.restart("vpn.service");
  return { names: led.names(), max, refused, before };
}
"#;

const PYTHON: &str = r#"

from dataclasses import asdict

from supervisor_sdk import led, units


async def tunnel():
    refused = []
    with led.Light("ACT") as light:
        light.on()
        light.off()
        light.set(2)
        most = light.max
        for attempt in [lambda: led.Light("ACT"), lambda: led.Light("gone")]:
            try:
                attempt()
            except Exception as error:
                refused.append(type(error).__name__)
    with led.Light("ACT"):
        pass
    try:
        await units.state("gone.service")
    except Exception as error:
        refused.append(type(error).__name__)
    before = await units.state("vpn.service")
    await units.restart("vpn.service")
    return {"names": led.names(), "max": most, "refused": refused, "before": asdict(before)}
"#;

const STEPS: &str = r#"
[[request]]
post = "/v3/tunnel"
answer = { status = 200, json = { names = ["ACT"], max = 5, refused = ["Conflict", "NotFound", "Internal"], before = { load = "loaded", active = "failed", sub = "failed" } } }

[[leds]]
set = { ACT = [5, 0, 2] }

[[units]]
restart = ["vpn.service"]
"#;
