//! Capabilities that take whole numbers of 64 bits, which not every language has: called from plugins on the device's
//! runtime.

use crate::author::Author;
use crate::languages::can_build;

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

/// What the plugin answers, and what `refused` is in it.
fn check(language: &str, source: &str, more: &str, refused: &str) {
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
        "[capabilities]\njournal = \"reads a line\"\nmetrics = \"counts\"\n",
    );
    author.edit(
        "rails/plugin.toml",
        "[routes]\n",
        "[routes]\n\"GET /v3/numbers\" = \"numbers\"\n",
    );
    author.write(
        "rails/device.toml",
        "[journal]\nlines = [\"one\", \"two\"]\n",
    );
    author.write(
        "rails/test/hello.toml",
        &format!(
            "[[request]]\nget = \"/v3/numbers\"\nanswer = {{ status = 200, json = {{ isSet = true, kept = \"still here\", read = true, refused = \"{refused}\" }} }}\n"
        ),
    );
    let passed = author.run_in("rails", "test").succeeds();
    assert!(passed.out.contains("1 passed, 0 failed"), "{}", passed.out);
}

#[test]
fn a_plugin_in_javascript_gives_and_gets_whole_numbers() {
    let refused = "RangeError RangeError RangeError RangeError";
    check("javascript", "src/plugin.js", JAVASCRIPT, refused);
}

#[test]
fn a_plugin_in_python_gives_and_gets_whole_numbers() {
    check("python", "src/plugin.py", PYTHON, "ValueError ValueError");
}
