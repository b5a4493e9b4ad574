/** Values for the interface. */

import { validText } from "./json-text.js";

/**
 * Checks a whole number for the interface. The engine accepts plain numbers for those of 64 bits too, and ends the
 * plugin if it receives a BigInt. Of a number with too many bits it would pass on only the lowest, so a chip would
 * receive 44 instead of 300.
 */
export function wholeNumber(value, bits = 53) {
  const most = 2 ** bits - 1;
  if (!Number.isSafeInteger(value) || value < 0 || value > most) {
    throw new RangeError(`${String(value)} is not a whole number from 0 to ${most}`);
  }
  return value;
}

/** Checks a flag for the interface. The engine ends the plugin if it receives anything else. */
export function boolean(value) {
  if (typeof value !== "boolean") throw new TypeError(`${String(value)} is neither true nor false`);
  return value;
}

/** Checks a text for the interface, and returns it with U+FFFD for halves of surrogate pairs. The engine ends the plugin if
 * it receives anything else. */
export function text(value) {
  if (typeof value !== "string") throw new TypeError(`${String(value)} is not a text`);
  return validText(value);
}

/** Rounds a time to the whole milliseconds that the interface expects. */
export const milliseconds = (value, bits = 53) => wholeNumber(Math.round(value), bits);

/** Encodes text as UTF-8; returns bytes unchanged. Of anything else the engine would pass on nothing or a wrong byte, or it
 * would end the plugin. */
export function bytesOf(value) {
  if (typeof value === "string") return new TextEncoder().encode(value);
  if (!(value instanceof Uint8Array)) throw new TypeError(`${String(value)} is neither a text nor a Uint8Array`);
  return value;
}
