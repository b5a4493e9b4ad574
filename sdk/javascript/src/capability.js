import { Internal } from "./errors.js";

/**
 * Wraps the functions of a capability so that they throw the SDK's errors: the case `too-large` is thrown as
 * `classes["too-large"]`, and a case without a class as `Internal`.
 */
export function answers(classes = {}) {
  const errorOf = (thrown) => {
    // The engine throws an error of `wit/` as the payload of an `Error`; anything else is a bug, and is thrown
    // unchanged.
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
