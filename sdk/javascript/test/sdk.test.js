/** `node --import ./test/platform.js --test` in sdk/javascript: the input and the answers of handlers, without a
 * device. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";

const own = { TextEncoder, TextDecoder };
delete globalThis.TextEncoder;
delete globalThis.TextDecoder;
const { serve } = await import("../src/serve.js");
const { flag, integer, listOf, number, oneOf, optional, record, text } = await import("../src/kinds.js");
const { HttpError, NotFound } = await import("../src/errors.js");
const { Response } = await import("../src/response.js");
const { Body } = await import("../src/body.js");
const store = await import("../src/store.js");
const gpio = await import("../src/gpio.js");
const { inSources } = await import("../src/places.js");
const i2c = await import("../src/i2c.js");
const proxyRedirector = await import("../src/proxy-redirector.js");
const { TextEncoder: Encoder, TextDecoder: Decoder } = globalThis;

/** Returns the status and the text of an answer. */
async function call(handler, { params = [], query = "", body, headers = [] } = {}) {
  const bytes = (value) => new own.TextEncoder().encode(value);
  const request = {
    method: "POST",
    path: "/v3/x",
    route: "/v3/x",
    params,
    query,
    headers: headers.map(([name, value]) => [name, bytes(value)]),
    body: body === undefined ? { tag: "empty" } : { tag: "bytes", val: bytes(body) },
  };
  try {
    const answer = await serve({ "POST /v3/x": handler }).handle(request);
    return [answer.status, answer.body.tag === "bytes" ? new own.TextDecoder().decode(answer.body.val) : ""];
  } catch (error) {
    if (error instanceof Error) throw error;
    return [error.status, error.message];
  }
}

test("parameters are read as their kinds, and a misfit names its parameter", async () => {
  const handler = ({ params, query }) => [
    params.as({ id: integer() }),
    query.as({ on: flag(false), ids: listOf(integer()), ratio: optional(number()), kind: oneOf(["a", "b"], "b") }),
  ];
  assert.deepEqual(await call(handler, { params: [["id", "7"]] }), [200, '[{"id":7},{"on":false,"ids":[],"kind":"b"}]']);
  const query = "on=true&ids=1&ids=2&ratio=.5&kind=a&more";
  assert.deepEqual(await call(handler, { params: [["id", "-7"]], query }), [
    200,
    '[{"id":-7},{"on":true,"ids":[1,2],"ratio":0.5,"kind":"a"}]',
  ]);
  const table = {
    "on=yes": "query parameter `on` must be `true` or `false`, not `yes`",
    // A name that each object has.
    "on=toString": "query parameter `on` must be `true` or `false`, not `toString`",
    "ratio=1e999": "query parameter `ratio` must be a number, not `1e999`",
    "on=true&on=true": "query parameter `on` is given more than once",
    "ids=1&ids=x": "query parameter `ids[1]` must be a whole number, not `x`",
    "ratio=": "query parameter `ratio` must be a number, not ``",
    "kind=c": "query parameter `kind` must be one of `a`, `b`, not `c`",
  };
  for (const [query, message] of Object.entries(table)) {
    assert.deepEqual(await call(handler, { params: [["id", "7"]], query }), [400, message]);
  }
  assert.deepEqual(await call(handler), [400, "path parameter `id` is missing"]);
});

test("numbers have the form that they have in every language", async () => {
  const table = JSON.parse(await readFile(new URL("../../tests/numbers.json", import.meta.url), "utf8"));
  for (const [kind, read, expected] of [["whole", integer(), "a whole number"], ["decimal", number(), "a number"]]) {
    let seen;
    const handler = ({ params, query }) => {
      seen = [...(params.n === undefined ? [] : [params.as({ n: read }).n]), query.as({ n: read }).n];
    };
    for (const [text, result] of table[kind].accepted) {
      const query = `n=${encodeURIComponent(text)}`;
      assert.deepEqual(await call(handler, { params: [["n", text]], query }), [200, ""], text);
      assert.deepEqual(seen, [result, result], text);
    }
    for (const text of table[kind].refused) {
      const message = `parameter \`n\` must be ${expected}, not \`${text}\``;
      assert.deepEqual(await call(handler, { query: `n=${encodeURIComponent(text)}` }), [400, `query ${message}`]);
      assert.deepEqual(await call(handler, { params: [["n", text]] }), [400, `path ${message}`]);
    }
  }
  // Beyond these, several whole numbers are the same `number`.
  const whole = ({ query }) => query.as({ n: integer() }).n;
  for (const text of ["9007199254740991", "-9007199254740991"]) {
    assert.deepEqual(await call(whole, { query: `n=${text}` }), [200, text]);
  }
  for (const text of ["9007199254740992", "9007199254740993", "-9007199254740992", "9".repeat(50)]) {
    const message = `query parameter \`n\` must be from -9007199254740991 to 9007199254740991, not \`${text}\``;
    assert.deepEqual(await call(whole, { query: `n=${text}` }), [400, message]);
  }
});

test("names that objects have by themselves are names like others", async () => {
  const handler = ({ query }) => [query.__proto__, query.constructor ?? null, query.as({ as: text() })];
  assert.deepEqual(await call(handler, { query: "__proto__=1&as=2" }), [200, '["1",null,{"as":"2"}]']);
});

test("a query is decoded as browsers decode it", async () => {
  for (const query of ["a=%C3%A9+%F0%9F%98%80", "a=%zz%", "a=%ff", "%61=é", "a", "a=b=c", "&&a=1&"]) {
    const expected = new URLSearchParams(query).get("a");
    assert.deepEqual(await call(({ query }) => query.a, { query }), [200, expected], query);
  }
});

test("a JSON body is read as kinds, and a misfit names its field", async () => {
  const handler = ({ json }) =>
    json({
      name: text(),
      items: listOf(record({ count: integer(), kind: oneOf(["a"], "a") })),
      speed: optional(text()),
      ratio: optional(number()),
    });
  assert.deepEqual(await call(handler, { body: '\ufeff{"name":"x","items":[{"count":1}],"speed":null}' }), [
    200,
    '{"name":"x","items":[{"count":1,"kind":"a"}]}',
  ]);
  const table = {
    "[]": "the body must be an object, not `[]`",
    '{"items":[]}': "field `name` of the body is missing",
    '{"name":5}': "field `name` of the body must be text, not `5`",
    '{"name":"x","items":[{"count":1},{"count":"2"}]}': "field `items[1].count` of the body must be a whole number, not `2`",
    '{"name":"x","items":5}': "field `items` of the body must be a list, not `5`",
    '{"name":"x","items":[{"count":1e999}]}': "field `items[0].count` of the body must be a whole number, not `Infinity`",
    '{"name":"x","items":[],"ratio":-1e999}': "field `ratio` of the body must be a number, not `-Infinity`",
  };
  for (const [body, message] of Object.entries(table)) {
    assert.deepEqual(await call(handler, { body }), [400, message]);
  }
});

test("a body that is not JSON is refused", async () => {
  const handler = ({ json }) => json();
  assert.deepEqual(await call(handler, { body: "[1]" }), [200, "[1]"]);
  assert.deepEqual(await call(handler), [400, "the body is missing: it must be JSON"]);
  assert.equal((await call(handler, { body: "[1" }))[0], 400);
  assert.deepEqual(await call(handler, { body: "[".repeat(1 << 20) }), [400, "the body is nested more than 128 deep"]);
  assert.equal((await call(handler, { body: String.raw`"\ud800"` }))[0], 400);
  assert.equal((await call(handler, { body: "[1]", headers: [["content-type", "text/plain"]] }))[0], 415);
  assert.equal((await call(handler, { body: "[1]", headers: [["content-type", "application/a+json; charset=utf-8"]] }))[0], 200);
  assert.equal((await call(handler, { body: "[1]", headers: [["content-encoding", "gzip"]] }))[0], 415);
});

test("what is returned is the answer, an error is answered, and a bug is logged", async () => {
  const table = [
    [undefined, [200, ""]],
    ["é", [200, "é"]],
    [new Uint8Array([120]), [200, "x"]],
    [[1], [200, "[1]"]],
    [new Response({ id: 7 }, { status: 201 }), [201, '{"id":7}']],
  ];
  for (const [value, expected] of table) assert.deepEqual(await call(() => value), expected);
  const missing = () => {
    throw new NotFound("there is no rail `x`");
  };
  assert.deepEqual(await call(missing), [404, "there is no rail `x`"]);
  const half = () => {
    throw new NotFound("there is no rail `\ud800`");
  };
  assert.deepEqual(await call(half), [404, "there is no rail `\ufffd`"]);
  logged.length = 0;
  await assert.rejects(call(() => undefinedFunction()), ReferenceError);
  assert.match(logged[0][1], /^ReferenceError: undefinedFunction is not defined\n/);
  assert.throws(() => serve({ "GET /v3/x": undefined }), /GET \/v3\/x/);
});

test("an update that another call overtakes is done again, and a limit is an error of the SDK", async () => {
  interferences.push(new own.TextEncoder().encode("5"));
  assert.equal(await store.update("count", (count) => String(Number(count ?? 0) + 1)), "6");
  await assert.rejects(store.set("key", "x"), { name: "TooLarge", status: 413, message: "key is too long" });
});

test("a number that does not fit is refused, and not cut to its lowest bits", async () => {
  for (const [register, value] of [[0, 300], [256, 0], [0, -1], [0, 1.5], [0, "7"], [0, undefined]]) {
    await assert.rejects(i2c.writeByte("sensor", register, value), RangeError, `${register} ${value}`);
  }
  await assert.rejects(i2c.writeWord("sensor", 0, 65_536), { message: "65536 is not a whole number from 0 to 65535" });
  await assert.rejects(i2c.writeRead("sensor", "", 2 ** 32), RangeError);
  assert.throws(() => new Response("", { status: 70_000 }), RangeError);
  assert.throws(() => new HttpError(70_000, "teapot", ""), RangeError);
  assert.deepEqual(transferred, []);
  await i2c.writeByte("sensor", 255, 255);
  await i2c.writeWord("sensor", 0, 65_535);
  assert.deepEqual(transferred, [["sensor", 255, 255], ["sensor", 0, 65_535]]);
});

test("a line is switched by true and false alone", async () => {
  transferred.length = 0;
  for (const value of ["off", 0, null, undefined]) {
    await assert.rejects(gpio.write("relay", value), { message: `${value} is neither true nor false` });
  }
  await gpio.write("relay", false);
  assert.deepEqual(transferred, [["relay", false]]);
});

test("the proxy of the device is read and written through its provider", async () => {
  transferred.length = 0;
  const socks = { kind: "socks5", address: "10.0.0.9", port: 1080, login: undefined, password: "p" };
  for (const [state, expected] of [
    [{ tag: "direct" }, "direct"],
    [{ tag: "unusable", val: "no port" }, { unusable: "no port" }],
    // The engine passes on what is missing as null.
    [{ tag: "redirected", val: { proxy: { ...socks, login: null }, dns: null } }, { proxy: socks, dns: undefined }],
  ]) {
    globalThis.proxyState = state;
    assert.deepEqual(await proxyRedirector.get(), expected);
  }
  const dns = { address: "10.0.0.53", port: 53 };
  await proxyRedirector.set(await proxyRedirector.get());
  await proxyRedirector.set({ proxy: { kind: "http-relay", address: "proxy", port: 3128 }, dns });
  await proxyRedirector.set({ proxy: { ...socks, login: null }, dns: null });
  await proxyRedirector.set(undefined);
  await proxyRedirector.setNoProxy(["10.0.0.1"]);
  const relay = { kind: "http-relay", address: "proxy", port: 3128, login: undefined, password: undefined };
  const noDns = { proxy: socks, dns: undefined };
  assert.deepEqual(transferred, [noDns, { proxy: relay, dns }, noDns, null, ["10.0.0.1"]]);
  assert.deepEqual(await proxyRedirector.noProxy(), ["10.0.0.0/8"]);

  const odd = { proxy: { ...socks, address: "odd" } };
  await assert.rejects(proxyRedirector.set(odd), { name: "BadRequest", message: "odd is not an address" });
  for (const [failure, name] of [["unavailable", "Unavailable"], ["other", "Internal"]]) {
    globalThis.proxyFailure = failure;
    await assert.rejects(proxyRedirector.apply(), { name, message: "redsocks is missing" });
  }
  // The engine would end the plugin.
  for (const wrong of [{ kind: "socks" }, { port: 65_536 }, { port: "1080" }, { address: undefined }, { password: 7 }]) {
    await assert.rejects(proxyRedirector.set({ proxy: { ...socks, ...wrong } }), Error, JSON.stringify(wrong));
  }
  await assert.rejects(proxyRedirector.setNoProxy([7]), TypeError);
  assert.equal(transferred.length, 5);
});

test("an error before the first piece of a stream is an answer", async () => {
  async function* pieces({ query }) {
    const { count } = query.as({ count: integer(2) });
    for (let left = count; left > 0; left -= 1) yield `${left}\n`;
  }
  assert.deepEqual(await call(pieces, { query: "count=x" }), [400, "query parameter `count` must be a whole number, not `x`"]);
  await assert.rejects(call(async function* () { throw new Error("out of paper"); }), /out of paper/);
  const streamed = async (handler, query) => {
    const request = { method: "POST", path: "/v3/x", route: "/v3/x", params: [], query, headers: [], body: { tag: "empty" } };
    const answer = await serve({ "POST /v3/x": handler }).handle(request);
    const texts = [];
    for await (const piece of answer.body.val) texts.push(new own.TextDecoder().decode(piece));
    return [answer.status, texts];
  };
  assert.deepEqual(await streamed(pieces, "count=3"), [200, ["3\n", "2\n", "1\n"]]);
  assert.deepEqual(await streamed(pieces, "count=0"), [200, []]);
  assert.deepEqual(await streamed(function* () { yield "a"; yield "b"; }, ""), [200, ["a", "b"]]);
  const inResponse = (request) => new Response(pieces(request), { status: 201 });
  assert.deepEqual(await streamed(inResponse, "count=1"), [201, ["1\n"]]);
});

test("a piece of a stream that is neither a text nor bytes is an error", async () => {
  const request = { method: "POST", path: "/v3/x", route: "/v3/x", params: [], query: "", headers: [], body: { tag: "empty" } };
  const handle = (handler) => serve({ "POST /v3/x": handler }).handle(request);
  class Rail {}
  const table = [
    [5, "Number"], [true, "Boolean"], [undefined, "undefined"], [null, "null"], [[1, 2], "Array"], [{}, "Object"],
    [new Rail(), "Rail"], [new Uint16Array(1), "Uint16Array"], [new ArrayBuffer(1), "ArrayBuffer"],
  ];
  for (const [value, type] of table) {
    let ends = 0;
    async function* early() { try { yield value; } finally { ends += 1; } }
    async function* late() { try { yield "a"; yield value; } finally { ends += 1; } }
    const message =
      `failed to write the answer: a generator yields a value of the type \`${type}\`, but a piece must be a text or a ` +
      "`Uint8Array`; `JSON.stringify` writes other values as text";
    assert.deepEqual(await call(early), [500, message]);
    assert.deepEqual(await call(function* () { yield value; }), [500, message]);
    for (const handler of [late, () => new Body(late())]) {
      logged.length = 0;
      const answer = await handle(handler);
      const texts = [];
      await assert.rejects(async () => {
        for await (const piece of answer.body.val) texts.push(new own.TextDecoder().decode(piece));
      });
      assert.deepEqual(texts, ["a"], type);
      assert.ok(logged[0][1].startsWith(`Internal: ${message}`), logged[0][1]);
    }
    assert.equal(ends, 3, type);
    await assert.rejects(new Body(late()).bytes(), { message });
  }
  // An array of bytes would take each character for a number, and have zeros.
  assert.deepEqual(await new Body((async function* () { yield "é"; yield Uint8Array.of(97); })()).text(), "éa");
});

test("a content that is neither a text nor bytes is refused", async () => {
  transferred.length = 0;
  for (const value of [5, true, undefined, null, {}, new Uint16Array(1)]) {
    const error = { name: "TypeError", message: `${value} is neither a text nor a Uint8Array` };
    await assert.rejects(store.set("key", value), error);
    await assert.rejects(store.setFor("key", value, 1), error);
    await assert.rejects(i2c.writeRead("sensor", value, 2), error);
    if (value === undefined || value === null) continue;
    await assert.rejects(store.compareAndSet("key", value, "x"), error);
    await assert.rejects(store.compareAndSet("key", undefined, value), error);
    await assert.rejects(store.update("other", () => value), error);
  }
  for (const value of [5, true, null, {}]) {
    assert.throws(() => new Body(value), { message: `${value} is neither a text nor a Uint8Array` });
  }
  await assert.rejects(i2c.writeRead("sensor", [300], 2), { message: "300 is not a whole number from 0 to 255" });
  assert.deepEqual(transferred, []);
  await i2c.writeRead("sensor", [5], 2);
  await i2c.writeRead("sensor", Uint8Array.of(5), 2);
  assert.deepEqual(transferred, [["sensor", Uint8Array.of(5), 2], ["sensor", Uint8Array.of(5), 2]]);
});

test("an error after the first piece of a stream ends the call, and is logged", async () => {
  async function* pieces() {
    yield "a";
    throw new NotFound("out of paper");
  }
  const handlers = {
    pieces,
    generator: function* () { yield* ["a"]; throw new NotFound("out of paper"); },
    response: () => new Response(pieces(), { status: 201 }),
    body: () => new Body(pieces()),
  };
  for (const [name, handler] of Object.entries(handlers)) {
    logged.length = ended.length = 0;
    const request = { method: "POST", path: "/v3/x", route: "/v3/x", params: [], query: "", headers: [], body: { tag: "empty" } };
    const answer = await serve({ "POST /v3/x": handler }).handle(request);
    const texts = [];
    const read = async () => {
      for await (const piece of answer.body.val) texts.push(new own.TextDecoder().decode(piece));
    };
    await assert.rejects(read(), /out of paper/, name);
    assert.deepEqual(texts, ["a"], name);
    // The reason is the whole error in one line, of which the device keeps the beginning.
    assert.match(ended[0], /^NotFound: out of paper .*at .*sdk\.test\.js:\d+/, name);
    assert.equal(ended.length, 1, name);
    assert.match(logged[0][1], /^NotFound: out of paper\n/, name);
  }
  // A caller who leaves ends the generator, and no call fails.
  logged.length = ended.length = 0;
  let ends = 0;
  const endless = async function* () { try { for (;;) yield "a"; } finally { ends += 1; } };
  const request = { method: "POST", path: "/v3/x", route: "/v3/x", params: [], query: "", headers: [], body: { tag: "empty" } };
  const answer = await serve({ "POST /v3/x": endless }).handle(request);
  for await (const _ of answer.body.val) break;
  assert.deepEqual([ends, ended, logged], [1, [], []]);
});

test("a stream of the host is passed on as it is", async () => {
  const stream = { cancelRead() {}, next: async () => ({ done: true }) };
  const request = { method: "POST", path: "/v3/x", route: "/v3/x", params: [], query: "", headers: [], body: { tag: "stream", val: stream } };
  const answer = await serve({ "POST /v3/x": ({ body }) => body }).handle(request);
  assert.equal(answer.body.val, stream);
});

test("the places of an error are those in the sources", async () => {
  const stack = "    at price (componentize-qjs:user.js:12:10)\n    at hello (componentize-qjs:user.js:20:3)\n    at native\n";
  assert.equal(inSources(stack), stack);
  globalThis.supervisorPlaces = {
    sources: ["src/plugin.ts", "supervisor-sdk/src/serve.js"],
    runs: [[1, -1, 0], [10, 0, 3], [13, 0, 30], [20, 1, 27]],
  };
  const places = {
    9: "componentize-qjs:user.js:9",
    10: "src/plugin.ts:3",
    12: "src/plugin.ts:5",
    13: "src/plugin.ts:30",
    21: "supervisor-sdk/src/serve.js:28",
  };
  for (const [line, place] of Object.entries(places)) {
    assert.equal(inSources(`    at f (componentize-qjs:user.js:${line}:10)`).replace(":10)", ")"), `    at f (${place})`);
  }
  assert.equal(inSources(stack), "    at price (src/plugin.ts:5)\n    at hello (supervisor-sdk/src/serve.js:27)\n    at native\n");
  // The log and the reason why the call fails show them.
  globalThis.logged.length = globalThis.ended.length = 0;
  const thrown = Object.assign(new Error("out of paper"), { stack });
  await assert.rejects(call(() => { throw thrown; }), (error) => error === thrown && error.stack === inSources(stack));
  assert.deepEqual(globalThis.logged, [["error", `Error: out of paper\n${inSources(stack)}`.trimEnd()]]);
  assert.deepEqual(globalThis.ended, [
    "Error: out of paper at price (src/plugin.ts:5) at hello (supervisor-sdk/src/serve.js:27) at native",
  ]);
  delete globalThis.supervisorPlaces;
});

test("text is encoded and decoded as browsers do it", () => {
  const encoded = (value) => [...new Encoder().encode(value)];
  for (const value of ["", "aé€😀", "\ud800", "\udc00x", "a\ud83d", "\ufeffa"]) {
    assert.deepEqual(encoded(value), [...new own.TextEncoder().encode(value)]);
  }
  let seed = 1;
  const random = (below) => (seed = (seed * 48271) % 0x7fffffff) % below;
  const leads = [0x00, 0x7f, 0x80, 0xbb, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff, 0x9f, 0xa0, 0x90, 0x8f];
  for (let round = 0; round < 20_000; round += 1) {
    const bytes = Uint8Array.from({ length: random(8) }, () => (random(2) ? leads[random(leads.length)] : random(256)));
    const expected = new own.TextDecoder().decode(bytes);
    assert.equal(new Decoder().decode(bytes), expected, `${bytes}`);
    const cut = random(bytes.length + 1);
    const decoder = new Decoder();
    const pieces = decoder.decode(bytes.subarray(0, cut), { stream: true }) + decoder.decode(bytes.subarray(cut));
    assert.equal(pieces, expected, `${bytes} at ${cut}`);
  }
  const decoder = new Decoder();
  const marked = [0xef, 0xbb, 0xbf, 0x61].map((byte) => decoder.decode(Uint8Array.of(byte), { stream: true }));
  assert.equal(marked.join(""), "a");
  const long = "é".repeat(100_000);
  assert.equal(new Decoder().decode(new Encoder().encode(long)), long);
  // It is decoded in pieces, which end between two characters.
  for (let shift = 0; shift < 5; shift += 1) {
    const bytes = new Encoder().encode("a".repeat(8188 + shift) + "€😀".repeat(3000));
    assert.equal(new Decoder("utf-8", { fatal: true }).decode(bytes), new own.TextDecoder().decode(bytes), `${shift}`);
    for (const at of [8190, 8191, 8192, 8193, 20_000]) {
      const invalid = bytes.with(at, 0xff);
      assert.equal(new Decoder().decode(invalid), new own.TextDecoder().decode(invalid), `${shift} ${at}`);
    }
  }
  assert.throws(() => new Decoder("utf-8", { fatal: true }).decode(new Uint8Array([0xff])), TypeError);
  assert.throws(() => new Decoder("utf-16"), RangeError);
});
