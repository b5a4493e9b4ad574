import { Internal } from "./errors.js";

/**
 * Wraps the functions of a capability so that what they throw is one of the SDK's errors: the case `too-large` is thrown
 * as `classes["too-large"]`, and one that is not named as `Internal`.
 */
export function answers(classes = {}) {
  const errorOf = (thrown) => {
    // The engine throws an error of `wit/` as the payload of an `Error`; anything else is a bug, and stays what it is.
    const payload = thrown?.payload;
    if (typeof payload === "string") return new Internal(payload);
    if (typeof payload?.tag !== "string") return thrown;
    return new (classes[payload.tag] ?? Internal)(payload.val ?? payload.tag);
  };
  return (call) =>
    (...given) => {
      try {
        const result = call(...given);
        return typeof result?.then === "function"
          ? result.then(undefined, (thrown) => {
              throw errorOf(thrown);
            })
          : result;
      } catch (thrown) {
        throw errorOf(thrown);
      }
    };
}

/**
 * A whole number that the interface takes. The engine takes plain numbers for those of 64 bits as well, and ends the plugin
 * at a BigInt. Of a number that has too many bits it would pass on the lowest, so that a chip would get 44 instead of 300.
 */
export function wholeNumber(value, bits = 53) {
  const most = 2 ** bits - 1;
  if (!Number.isSafeInteger(value) || value < 0 || value > most) {
    throw new RangeError(`${String(value)} is not a whole number from 0 to ${most}`);
  }
  return value;
}

/** A flag that the interface takes. The engine ends the plugin at anything else. */
export function boolean(value) {
  if (typeof value !== "boolean") throw new TypeError(`${String(value)} is neither true nor false`);
  return value;
}

/** A time that the interface takes in whole milliseconds. */
export const milliseconds = (value, bits = 53) => wholeNumber(Math.round(value), bits);

/** Text as UTF-8; bytes and nothing stay as they are. */
export const bytesOf = (value) => (typeof value === "string" ? new TextEncoder().encode(value) : value);
