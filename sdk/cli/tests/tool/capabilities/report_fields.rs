//! Fields in the device's report.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "report = \"shows how full the tanks are\"\n",
    route: ("GET /v3/fields", "fields"),
    device: "",
    steps: STEPS,
};

const JAVASCRIPT: &str = r#"
import { report } from "supervisor-sdk";

export async function fields() {
  await report.set("level", 63.5, { unit: "%" });
  await report.set("door", "open");
  await report.set("armed", true);
  await report.set("gone", 1);
  await report.remove("gone");
  const refused = [];
  /** @type {[string, any][]} */
  const fields = [["Level", 1], ["level", NaN], ["door", "two\nlines"], ["door", null]];
  for (const [name, value] of fields) {
    try {
      await report.set(name, value);
    } catch (error) {
      refused.push(error.name);
    }
  }
  return { refused: refused.join(" ") };
}
"#;

const PYTHON: &str = r#"

from supervisor_sdk import report


async def fields():
    await report.set("level", 63.5, unit="%")
    await report.set("door", "open")
    await report.set("armed", True)
    await report.set("gone", 1)
    await report.remove("gone")
    refused = []
    for name, value in [("Level", 1), ("level", float("nan")), ("door", "two\nlines"), ("door", None)]:
        try:
            await report.set(name, value)
        except Exception as error:
            refused.append(type(error).__name__)
    return {"refused": " ".join(refused)}
"#;

const STEPS: &str = r#"
[[report]]
fields = {}

[[request]]
get = "/v3/fields"
answer = { status = 200, json = { refused = "Internal Internal Internal TypeError" } }

[[report]]
fields = { level = { value = 63.5, unit = "%" }, door = { value = "open" }, armed = { value = true } }
"#;
