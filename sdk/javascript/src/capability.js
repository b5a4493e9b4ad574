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

/** Text as UTF-8; bytes and nothing stay as they are. */
export const bytesOf = (value) => (typeof value === "string" ? new TextEncoder().encode(value) : value);
