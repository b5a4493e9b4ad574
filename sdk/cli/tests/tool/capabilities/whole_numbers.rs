//! Whole numbers of 64 bits, which not every language has.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "journal = \"reads a line\"\nmetrics = \"counts\"\n",
    route: ("GET /v3/numbers", "numbers"),
    device: "[journal]\nlines = [\"one\", \"two\"]\n",
    steps: STEPS,
};

const JAVASCRIPT: &str = r#"
import { journal, metrics } from "supervisor-sdk";

export async function numbers() {
  await store.setFor("brief", "here", 60_000);
  const isSet = await store.compareAndSet("brief", "here", "still here", 60_000);
  await metrics.addToCounter("calls");
  await metrics.addToCounter("calls", 4_000_000_000, { kind: "many" });
  const body = await journal.read({ count: 1 });
  const refused = [];
  for (const increment of [-1, 1.5, NaN, 2 ** 53]) {
    try {
      await metrics.addToCounter("calls", increment);
    } catch (error) {
      refused.push(error.name);
    }
  }
  return { isSet, kept: await store.getText("brief"), read: (await body.text()).length > 0, refused: refused.join(" ") };
}
"#;

const PYTHON: &str = r#"

from supervisor_sdk import journal, metrics


async def numbers():
    await store.set_for("brief", "here", seconds=60)
    is_set = await store.compare_and_set("brief", b"here", b"still here", seconds=60)
    await metrics.add_to_counter("calls")
    await metrics.add_to_counter("calls", 4_000_000_000, kind="many")
    refused = []
    for increment in [-1, 2**64]:
        try:
            await metrics.add_to_counter("calls", increment)
        except Exception as error:
            refused.append(type(error).__name__)
    read = b""
    async for piece in await journal.read(count=1):
        read += piece
    kept = (await store.get("brief")).decode()
    return {"isSet": is_set, "kept": kept, "read": len(read) > 0, "refused": " ".join(refused)}
"#;

const STEPS: &str = r#"
[[request]]
get = "/v3/numbers"
answer = { status = 200, json = { isSet = true, kept = "still here", read = true, refused = "REFUSED_NUMBERS" } }

[[metrics]]
counters = { calls = 1, 'calls{kind="many"}' = 4_000_000_000 }
"#;
