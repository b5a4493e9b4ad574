import { Internal } from "./errors.js";

/**
 * Wraps the functions of a capability so that what they throw is one of the SDK's errors: the case `too-large` is thrown
 * as `classes["too-large"]`, and one that is not named as `Internal`.
 */
export function answers(classes = {}) {
  const errorOf = (thrown) => {
    // A variant of `wit/`; anything else is a bug, and stays what it is.
    if (typeof thrown === "string") return new Internal(thrown);
    if (typeof thrown?.tag !== "string") return thrown;
    return new (classes[thrown.tag] ?? Internal)(thrown.val ?? thrown.tag);
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

/** Text as UTF-8; bytes and nothing stay as they are. */
export const bytesOf = (value) => (typeof value === "string" ? new TextEncoder().encode(value) : value);
