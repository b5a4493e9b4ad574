/** Actions of a plugin's own, and typed actions, without a device; run with those of `sdk.test.js`. */
import assert from "node:assert/strict";
import test from "node:test";

const { provideActions, provideBootConfig, provideIdentify, provideOsUpdates, provideProxyRedirector } = await import(
  "../src/serve.js"
);
const { flag, text } = await import("../src/kinds.js");
const { BadRequest, NotFound, Unavailable } = await import("../src/errors.js");
const log = await import("../src/log.js");

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
  for (const input of ["{", [0xff], "1".repeat(100_000) + "x"]) {
    const message = await call(action, input);
    assert.match(message, /^refused: the input is not JSON: /);
    assert.ok(message.length < 300, message);
  }
  assert.equal(await call(({ text }) => text(), [0xff]), "refused: the input is not text");
});

test("an input that the engine's parser cannot take is refused", async () => {
  const action = ({ json }) => json();
  const lists = (depth) => "[".repeat(depth) + "]".repeat(depth);
  const objects = (depth) => '{"]":'.repeat(depth) + "0" + "}".repeat(depth);
  for (const nested of [lists, objects]) {
    assert.equal(await call(action, nested(128)), nested(128));
    assert.equal(await call(action, nested(129)), "refused: the input is nested more than 128 deep");
  }
  // Brackets in texts, behind escapes and beside each other are no levels.
  for (const value of [`${"[".repeat(999)}\\"${"{".repeat(999)}`, `\\${"[".repeat(999)}`, Array(999).fill([{}])]) {
    assert.equal(await call(action, JSON.stringify(value)), JSON.stringify(value));
  }
  for (const input of ["[".repeat(1 << 19), '{"a":'.repeat(100_000), `["${"\\".repeat(1 << 18)}", ${"[".repeat(999)}`]) {
    assert.equal(await call(action, input), "refused: the input is nested more than 128 deep");
  }
});

test("half of a surrogate pair in an input is refused, and in an error it is replaced", async () => {
  const action = ({ json }) => json();
  for (const input of [String.raw`"\ud800"`, String.raw`{"\uDC00":1}`, String.raw`[["a\ud83d"]]`]) {
    assert.equal(await call(action, input), "refused: the input contains half of a surrogate pair, which is not text");
  }
  assert.equal(await call(action, String.raw`"\ud83d\ude00"`), '"😀"');
  assert.equal(await call(action, String.raw`"\\ud800"`), String.raw`"\\ud800"`);
  const missing = () => {
    throw new NotFound("there is no rail `\ud800`, \ud83d\ude00");
  };
  assert.equal(await call(missing), "refused: there is no rail `\ufffd`, 😀");
  logged.length = 0;
  log.info("\udc00");
  assert.deepEqual(logged, [["info", "\ufffd"]]);
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
  // The call ends, so the engine passes on neither text as an answer.
  logged.length = ended.length = 0;
  await assert.rejects(call(() => undefinedFunction()), ReferenceError);
  assert.match(logged[0][1], /^ReferenceError: undefinedFunction is not defined\n/);
  await call(() => Promise.reject("out of paper"));
  assert.match(ended[0], /^ReferenceError: undefinedFunction is not defined/);
  assert.deepEqual(ended.slice(1), ["out of paper"]);
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
  assert.throws(() => provideOsUpdates({ status() {}, ...steps, commit: undefined }), /no object with a function `commit`/);
  assert.throws(() => provideOsUpdates(undefined), /`status`/);
});

test("a function shows which device this is, and its error is a text", async () => {
  assert.equal(await provideIdentify(async () => "more than the interface takes").identify(), undefined);
  const dark = () => {
    throw new Unavailable("there is no LED \ud800");
  };
  await assert.rejects(provideIdentify(dark).identify(), (error) => error === "there is no LED \ufffd");
  await assert.rejects(provideIdentify(() => undefinedFunction()).identify(), ReferenceError);
  assert.throws(() => provideIdentify(undefined), /`identify` with a name under which the plugin exports no function/);
});

test("a boot configuration is read, compared and written, and what the interface does not take is refused", async () => {
  let comparison = { changes: ["HOST_CONFIG_a"], needsReboot: true };
  let settings = [{ name: "HOST_CONFIG_a", value: "\ud800", line: 7 }];
  const calls = [];
  const provider = provideBootConfig({
    get: () => settings,
    compare: async (target) => (calls.push(["compare", target]), comparison),
    set: async (target) => {
      if (target.length === 0) throw new NotFound("there is no `config.txt`");
      calls.push(["set", target]);
      return { ...comparison, refused: [{ name: "a", reason: "odd", line: 7 }], foreign: ["b"] };
    },
  });
  assert.deepEqual(await provider.get(), [{ name: "HOST_CONFIG_a", value: "\ufffd" }]);
  const target = [{ name: "HOST_CONFIG_a", value: "1" }];
  assert.deepEqual(await provider.compare(target), { ...comparison, refused: [], foreign: [] });
  const before = { ...comparison, refused: [{ name: "a", reason: "odd" }], foreign: ["b"] };
  assert.deepEqual(await provider.set(target), before);
  assert.deepEqual(calls, [["compare", target], ["set", target]]);
  await assert.rejects(provider.set([]), (error) => error === "there is no `config.txt`");
  for (const wrong of [{ changes: [1] }, { needsReboot: 1 }, { changes: undefined }, { refused: [{ name: "a" }] }]) {
    comparison = { changes: [], needsReboot: true, ...wrong };
    await assert.rejects(provider.compare(target), TypeError, JSON.stringify(wrong));
  }
  settings = [{ name: "HOST_CONFIG_a", value: 1 }];
  await assert.rejects(provider.get(), TypeError);
  assert.throws(() => provideBootConfig({ get() {}, compare() {} }), /`boot-config` .* no object with a function `set`/);
});

test("a proxy is configured, and an error says whether a value or the provider is to blame", async () => {
  const socks = { kind: "socks5", address: "10.0.0.9", port: 1080 };
  const calls = [];
  let state = "direct";
  const functions = {
    get: () => state,
    set: async (target) => {
      if (target?.proxy.address === "odd") throw new BadRequest("`odd` is not an address");
      calls.push(target);
    },
    noProxy: async () => ["10.0.0.0/8"],
    setNoProxy: (addresses) => void calls.push(addresses),
    apply: () => {
      throw new Unavailable("redsocks does not start");
    },
  };
  const provider = provideProxyRedirector(functions);
  assert.deepEqual(await provider.get(), { tag: "direct" });
  state = { unusable: "no port" };
  assert.deepEqual(await provider.get(), { tag: "unusable", val: "no port" });
  state = { proxy: { ...socks, login: "a" }, dns: { address: "dns", port: 53 } };
  const { proxy, dns } = (await provider.get()).val;
  assert.deepEqual([proxy, dns], [{ ...socks, login: "a", password: undefined }, state.dns]);
  // The engine passes on what is missing as null.
  await provider.set({ proxy: { ...socks, login: null, password: "p" }, dns: null });
  await provider.set(null);
  await provider.setNoProxy(["10.0.0.1"]);
  const received = { proxy: { ...socks, login: undefined, password: "p" }, dns: undefined };
  assert.deepEqual(calls, [received, undefined, ["10.0.0.1"]]);
  assert.deepEqual(await provider.noProxy(), ["10.0.0.0/8"]);
  const odd = { proxy: { ...socks, address: "odd" } };
  await assert.rejects(provider.set(odd), { tag: "invalid", val: "`odd` is not an address" });
  await assert.rejects(provider.apply(), { tag: "other", val: "redsocks does not start" });
  for (const wrong of [{ kind: "socks" }, { port: 65_536 }, { port: "1080" }, { address: undefined }, { password: 7 }]) {
    state = { proxy: { ...socks, ...wrong } };
    await assert.rejects(provider.get(), Error, JSON.stringify(wrong));
  }
  state = undefined;
  await assert.rejects(provider.get(), TypeError);
  assert.throws(() => provideProxyRedirector({ ...functions, apply: undefined }), /no object with a function `apply`/);
});
