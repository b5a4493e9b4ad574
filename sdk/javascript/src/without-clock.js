/**
 * `Date` and `performance` of a plugin that does not ask for the capability `clock`. In the bundle only of such a plugin,
 * before the plugin.
 *
 * Without the capability, a clock would end a call without a reason. So reading it is an error in a call. While the plugin
 * is imported it works, because some packages read it then; the result is the time of the build.
 */

import { isServing } from "./serving.js";

const MISSING = 'the plugin reads a clock without asking for it: add `clock = "why"` to [capabilities] of plugin.toml';

function check() {
  if (isServing) throw new Error(MISSING);
}

/** Returns a function that first checks whether it may read a clock. */
const checked = (read) =>
  function now() {
    check();
    return Reflect.apply(read, this, []);
  };

Date.now = checked(Date.now);
// The engine's object cannot be changed.
const ofEngine = performance;
const ofPlugin = Object.create(ofEngine, { now: { value: checked(() => ofEngine.now()) } });
Object.defineProperty(globalThis, "performance", { value: ofPlugin, configurable: true, writable: true });

const CheckedDate = new Proxy(Date, {
  construct(target, given, newTarget) {
    // With arguments, it is a time of the plugin's own.
    if (given.length === 0) check();
    return Reflect.construct(target, given, newTarget);
  },
  // Without `new`, the result is the current time whatever the arguments are.
  apply(target, self, given) {
    check();
    return Reflect.apply(target, self, given);
  },
});
Date.prototype.constructor = CheckedDate;
globalThis.Date = CheckedDate;
