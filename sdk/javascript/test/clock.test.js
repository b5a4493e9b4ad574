/** Clocks of a plugin without the capability `clock`. A process has one call, as on a device, so the steps follow each other. */
import assert from "node:assert/strict";
import test from "node:test";

const OfEngine = Date;
await import("../src/without-clock.js");
const { beginCall } = await import("../src/serving.js");

const READS = [() => Date.now(), () => new Date(), () => Date(), () => Date(0), () => performance.now(), () => new (class extends Date {})()];

test("clocks work while the plugin is imported", () => {
  for (const read of READS) assert.ok(read());
});

test("in a call, reading a clock is an error, and times of the plugin's own are not", () => {
  beginCall();
  for (const read of READS) assert.throws(read, /reads a clock without asking for it: add `clock = "why"` to \[capabilities\]/, String(read));
  assert.throws(() => new (new Date(0).constructor)(), /reads a clock/);
  assert.equal(new Date(0).toISOString(), "1970-01-01T00:00:00.000Z");
  assert.equal(new Date(2020, 1).getFullYear(), 2020);
  assert.ok(new Date(0) instanceof Date && new OfEngine(0) instanceof Date);
  assert.equal(Date.UTC(1970, 0), 0);
  assert.equal(Date.name, "Date");
});
