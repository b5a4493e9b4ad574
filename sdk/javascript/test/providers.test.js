/** Actions of a plugin's own, and updates of the operating system, without a device; run with those of `sdk.test.js`. */
import assert from "node:assert/strict";
import test from "node:test";

const { provideActions, provideOsUpdates } = await import("../src/serve.js");
const { flag, text } = await import("../src/kinds.js");
const { NotFound, Unavailable } = await import("../src/errors.js");

const bytes = (value) => (typeof value === "string" ? new TextEncoder().encode(value) : Uint8Array.from(value));

/** Returns the output of an action, or its error. */
async function call(action, input = "") {
  try {
    return new TextDecoder().decode(await provideActions({ set: action }).call("set", bytes(input)));
  } catch (error) {
    if (typeof error === "string") return `refused: ${error}`;
    throw error;
  }
}

test("the input of an action is bytes, text or JSON, read as kinds", async () => {
  const table = [
    [({ bytes }) => bytes, "x", "x"],
    [({ text }) => text(), "é", '"é"'],
    [({ json }) => json(), "[1]", "[1]"],
    [({ json }) => json({ name: text(), on: flag(true) }), '{"name":"5v","more":1}', '{"name":"5v","on":true}'],
  ];
  for (const [action, input, expected] of table) assert.equal(await call(action, input), expected);
});

test("an input that does not fit is refused by its place", async () => {
  const action = ({ json }) => json({ name: text(), on: flag(true) });
  const table = {
    "": "the input is missing: it must be JSON",
    "[]": "the input must be an object, not `[]`",
    '{"on":false}': "field `name` of the input is missing",
    '{"name":"5v","on":"off"}': "field `on` of the input must be `true` or `false`, not `off`",
  };
  for (const [input, message] of Object.entries(table)) assert.equal(await call(action, input), `refused: ${message}`);
  for (const input of ["{", [0xff], "[".repeat(100_000)]) {
    const message = await call(action, input);
    assert.match(message, /^refused: the input is not JSON: /);
    assert.ok(message.length < 300, message);
  }
  assert.equal(await call(({ text }) => text(), [0xff]), "refused: the input is not text");
});

test("the output of an action is bytes or JSON", async () => {
  const table = [
    [undefined, "null"],
    [null, "null"],
    ["é", '"é"'],
    [Uint8Array.of(120), "x"],
    [Promise.resolve({ name: "5v" }), '{"name":"5v"}'],
    [() => 1, "refused: failed to write the output: a function is not JSON"],
  ];
  for (const [value, expected] of table) assert.equal(await call(() => value), expected);
});

test("an error of an action is for its caller, and a bug is logged and ends the call", async () => {
  const missing = async () => {
    throw new NotFound("there is no rail `x`");
  };
  assert.equal(await call(missing), "refused: there is no rail `x`");
  logged.length = 0;
  // To the engine, an error whose message is a text would be an answer.
  const isBug = (error) => error instanceof Error && typeof error.message === "object";
  await assert.rejects(call(() => undefinedFunction()), (error) => error instanceof ReferenceError && isBug(error));
  assert.match(logged[0][1], /^ReferenceError: undefinedFunction is not defined\n/);
  await assert.rejects(call(() => Promise.reject("out of paper")), (error) => isBug(error) && /paper/.test(error.message));
  assert.throws(() => provideActions({ set: undefined }), /the action `set`/);
});

test("each step of an update calls the function of its name", async () => {
  const calls = [];
  const step = (name) => (...given) => {
    if (given[1] === "odd") throw new Unavailable("the source is not reached");
    calls.push([name, ...given]);
    return "more than the interface takes";
  };
  let status = { running: "1.0", committed: true, installing: 7 };
  const steps = { stage: step("stage"), activate: step("activate"), commit: step("commit"), rollBack: step("rollBack") };
  const provider = provideOsUpdates({ status: async () => status, ...steps });
  assert.deepEqual(await provider.status(), { ...status, staged: undefined, failure: undefined });
  assert.equal(await provider.stage("/bundle", "2.0"), undefined);
  await provider.activate();
  await provider.commit();
  await provider.rollBack();
  assert.deepEqual(calls, [["stage", "/bundle", "2.0"], ["activate"], ["commit"], ["rollBack"]]);
  await assert.rejects(provider.stage("/bundle", "odd"), (error) => error === "the source is not reached");
  for (const wrong of [{ installing: 300 }, { committed: "no" }, { installing: "7" }]) {
    status = { running: "1.0", committed: true, ...wrong };
    await assert.rejects(provider.status(), Error, JSON.stringify(wrong));
  }
  assert.throws(() => provideOsUpdates({ status() {}, ...steps, commit: undefined }), /no function `commit`/);
  assert.throws(() => provideOsUpdates(undefined), /`status`/);
});
