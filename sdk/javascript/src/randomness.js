/**
 * `Math.random` and `crypto`, with the capability `random`.
 *
 * The build imports the plugin, and each call begins where the import ended: the engine's own generator would give every
 * call the same numbers. So a call begins with a new seed, or, without the capability, gets an error.
 *
 * `Math.random` works while the plugin is imported, because some packages use it then. The result is the same in every
 * call. Keys and identifiers must not be, so `crypto` does not work then.
 */

import { isServing } from "./serving.js";

const MISSING =
  'the plugin uses random numbers without asking for them, so they would be the same in every call: add `random = "why"` to [capabilities] of plugin.toml';
/** The most bytes that `crypto.getRandomValues` fills, as in browsers. */
const MOST_BYTES = 65_536;
const INTEGERS = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array];

const ofEngine = Math.random;
let bytesOfDevice;
let next;

/** Gives the plugin the device's random bytes. The build's file calls it if `plugin.toml` asks for the capability. */
export function provideRandomBytes(bytes) {
  bytesOfDevice = bytes;
}

function randomBytes(length) {
  if (bytesOfDevice === undefined) throw new Error(MISSING);
  if (!isServing) throw new Error("`crypto` is used while the plugin is built, so the result would be the same in every call: use it in a function");
  return bytesOfDevice(length);
}

/** Returns a generator of numbers from 0 to 2^32 - 1: xoshiro128** by Blackman and Vigna. */
function generator(seed) {
  let [a, b, c, d] = new Uint32Array(seed.slice().buffer);
  // It would return nothing but zeros.
  if ((a | b | c | d) === 0) a = 1;
  const rotated = (value, bits) => (value << bits) | (value >>> (32 - bits));
  return () => {
    const result = Math.imul(rotated(Math.imul(b, 5), 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotated(d, 11);
    return result;
  };
}

Math.random = function random() {
  if (!isServing) return ofEngine();
  next ??= generator(randomBytes(16));
  // 53 bits, which is the precision of a number.
  return ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
};

const crypto = {
  getRandomValues(array) {
    if (!INTEGERS.some((kind) => array instanceof kind)) throw new TypeError("`crypto.getRandomValues` fills a typed array of integers");
    if (array.byteLength > MOST_BYTES) {
      const error = new Error(`\`crypto.getRandomValues\` fills at most ${MOST_BYTES} bytes, not ${array.byteLength}`);
      error.name = "QuotaExceededError";
      throw error;
    }
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(randomBytes(array.byteLength));
    return array;
  },

  randomUUID() {
    const bytes = Uint8Array.from(randomBytes(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40; // version 4
    bytes[8] = (bytes[8] & 0x3f) | 0x80; // RFC 9562
    const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  },
};
Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true, enumerable: true, writable: true });
