//! What other plugins do: their own actions, and `identify`.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "actions = \"switches the rails\"\nidentify = \"shows which device this is\"\n",
    route: ("POST /v3/others", "others"),
    device: "",
    steps: "",
};

const JAVASCRIPT: &str = r#"
import { actions, identify } from "supervisor-sdk";

export async function others() {
  const by = await actions.callJson("acme-rails/set", { name: "5v", on: true });
  const rails = new TextDecoder().decode(await actions.call("acme-rails/list"));
  const refused = [];
  const attempts = [
    () => actions.callJson("acme-rails/set", { name: "12v", on: true }),
    () => actions.call("acme-rails/reset", "all"),
    () => actions.call("gone/set", Uint8Array.of(1)),
  ];
  for (const attempt of attempts) {
    try {
      await attempt();
    } catch (error) {
      refused.push(error.name);
    }
  }
  await identify.run();
  return { by, rails, refused };
}
"#;

const PYTHON: &str = r#"

from supervisor_sdk import actions, identify


async def others():
    by = await actions.call_json("acme-rails/set", {"name": "5v", "on": True})
    rails = (await actions.call("acme-rails/list")).decode()
    refused = []
    attempts = [
        lambda: actions.call_json("acme-rails/set", {"name": "12v", "on": True}),
        lambda: actions.call("acme-rails/reset", "all"),
        lambda: actions.call("gone/set", b"\x01"),
    ]
    for attempt in attempts:
        try:
            await attempt()
        except Exception as error:
            refused.append(type(error).__name__)
    await identify.run()
    return {"by": by, "rails": rails, "refused": refused}
"#;
