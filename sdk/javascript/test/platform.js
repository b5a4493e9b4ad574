/** Replaces the interfaces of `platform:supervisor` and of WASI, which only a device has: `node --import ./test/platform.js`. */
import { register } from "node:module";

const SOURCES = {
  // The engine ends a call that passes a level that does not exist, and keeps that text as the reason.
  "platform:supervisor/log@1.4.0": `export default {
    write(level, message) {
      if (["trace", "debug", "info", "warn", "error"].includes(level)) globalThis.logged.push([level, message]);
      else globalThis.ended.push(level);
    },
  };`,
  // A store whose first `compareAndSet` may find that another call was faster.
  "platform:supervisor/store@1.4.0": `export default {
    get: async (key) => globalThis.stored.get(key) ?? null,
    set: async (key) => { throw Object.assign(new Error(), { payload: { tag: "too-large", val: key + " is too long" } }); },
    compareAndSet: async (key, expected, value) => {
      const other = globalThis.interferences.pop();
      if (other) globalThis.stored.set(key, other);
      if (String(globalThis.stored.get(key) ?? null) !== String(expected)) return false;
      globalThis.stored.set(key, value);
      return true;
    },
  };`,
  "platform:supervisor/gpio@1.4.0": `export default {
    write: async (...given) => { globalThis.transferred.push(given); },
  };`,
  "platform:supervisor/i2c@1.4.0": `export default {
    writeByte: async (...given) => { globalThis.transferred.push(given); },
    writeWord: async (...given) => { globalThis.transferred.push(given); },
    writeRead: async (...given) => { globalThis.transferred.push(given); },
  };`,
  // A provider that keeps what it received, and refuses the address `odd`.
  "platform:supervisor/proxy-redirector@1.4.0": `
    const fail = (tag, val) => { throw Object.assign(new Error(), { payload: { tag, val } }); };
    export default {
      get: async () => globalThis.proxyState,
      set: async (target) => {
        if (target?.proxy.address === "odd") fail("invalid", "odd is not an address");
        globalThis.transferred.push(target);
      },
      noProxy: async () => ["10.0.0.0/8"],
      setNoProxy: async (addresses) => { globalThis.transferred.push(addresses); },
      apply: async () => fail(globalThis.proxyFailure, "redsocks is missing"),
    };`,
  "wasi:filesystem/preopens@0.2.6": `export { default } from ${JSON.stringify(new URL("filesystem.js", import.meta.url).href)};`,
};
globalThis.logged = [];
globalThis.ended = [];
globalThis.stored = new Map();
globalThis.interferences = [];
globalThis.transferred = [];

register(
  `data:text/javascript,${encodeURIComponent(`
    const SOURCES = ${JSON.stringify(SOURCES)};
    export const resolve = (name, context, next) => (name in SOURCES ? { url: name, shortCircuit: true } : next(name, context));
    export const load = (url, context, next) =>
      url in SOURCES ? { format: "module", source: SOURCES[url], shortCircuit: true } : next(url, context);
  `)}`,
);
