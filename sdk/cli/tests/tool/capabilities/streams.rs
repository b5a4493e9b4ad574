//! Streams that a plugin writes while it waits. An error before the first piece is an answer, also if that is a number.

use super::Capability;

pub(super) const CAPABILITY: Capability = Capability {
    javascript: JAVASCRIPT,
    python: PYTHON,
    reasons: "",
    route: ("GET /v3/pieces/:count", "pieces"),
    device: "",
    steps: STEPS,
};

const JAVASCRIPT: &str = r#"
import { NotFound, timer } from "supervisor-sdk";

export async function* pieces({ params }) {
  await timer.sleep(1);
  if (params.count === "0") throw new NotFound("there are no pieces");
  if (params.count === "1") yield 5;
  for (let piece = 0; piece < Number(params.count); piece += 1) {
    yield `${piece}\n`;
    await timer.sleep(1);
  }
}
"#;

const PYTHON: &str = r#"

from supervisor_sdk import NotFound, timer


async def pieces(count: int):
    await timer.sleep(0.001)
    if count == 0:
        raise NotFound("there are no pieces")
    if count == 1:
        yield 5
    for piece in range(count):
        yield f"{piece}\n"
        await timer.sleep(0.001)
"#;

const STEPS: &str = r#"
[[request]]
get = "/v3/pieces/2"
answer = { status = 200, body = "0\n1\n" }

[[request]]
get = "/v3/pieces/0"
answer = { status = 404, json = { status = "failed", message = "there are no pieces" } }

[[request]]
get = "/v3/pieces/1"
answer = { status = 500, contains = [" yields a value of the type ", "but a piece must be "] }
"#;
