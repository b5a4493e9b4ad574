/** Random numbers of plugins with and without the capability `random`. A process has one call, as on a device, so the
 * steps follow each other. */
import assert from "node:assert/strict";
import test from "node:test";

const ofEngine = Math.random;
const { provideRandomBytes } = await import("../src/randomness.js");
const { beginCall } = await import("../src/serving.js");
const { serve } = await import("../src/serve.js");

const answer = async (handler) => {
  const request = { method: "GET", path: "/v3/x", route: "/v3/x", params: [], query: "", headers: [], body: { tag: "empty" } };
  return serve({ "GET /v3/x": handler }).handle(request);
};

test("random numbers need the capability, except while the plugin is imported", async () => {
  assert.notEqual(Math.random, ofEngine);
  assert.ok(Math.random() < 1);
  const missing = /without asking for them.*add `random = "why"` to \[capabilities\]/;
  assert.throws(() => crypto.randomUUID(), missing);
  provideRandomBytes((length) => new Uint8Array(length));
  assert.throws(() => crypto.randomUUID(), /while the plugin is built/);
  provideRandomBytes(undefined);
  await assert.rejects(answer(() => Math.random()), missing);
  assert.throws(() => crypto.getRandomValues(new Uint8Array(1)), missing);
});

test("with the capability, numbers come from the device", () => {
  const lengths = [];
  let byte = 1;
  provideRandomBytes((length) => {
    lengths.push(length);
    return Uint8Array.from({ length }, () => (byte = (byte * 167 + 13) % 256));
  });
  beginCall();
  const numbers = Array.from({ length: 10_000 }, Math.random);
  assert.deepEqual(lengths, [16], "one seed for all");
  assert.equal(new Set(numbers).size, numbers.length);
  assert.ok(numbers.every((number) => number >= 0 && number < 1));
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  assert.ok(Math.abs(mean - 0.5) < 0.02, `${mean}`);

  const uuid = crypto.randomUUID();
  assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.notEqual(crypto.randomUUID(), uuid);
  const part = new Uint16Array(8).subarray(2, 4);
  assert.equal(crypto.getRandomValues(part), part);
  assert.deepEqual([...new Uint16Array(part.buffer)].map((value) => value > 0), [false, false, true, true, false, false, false, false]);
});

test("no more bytes are filled at a time than in browsers, and only those of integers", () => {
  crypto.getRandomValues(new Uint8Array(65_536));
  const tooMany = { name: "QuotaExceededError", message: "`crypto.getRandomValues` fills at most 65536 bytes, not 65540" };
  assert.throws(() => crypto.getRandomValues(new Uint32Array(16_385)), tooMany);
  for (const array of [new Float64Array(1), new DataView(new ArrayBuffer(1)), [1], undefined]) {
    assert.throws(() => crypto.getRandomValues(array), TypeError);
  }
});
