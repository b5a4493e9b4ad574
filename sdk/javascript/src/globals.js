/** Globals that programs expect of a JavaScript engine, and that QuickJS lacks. Imported before the plugin. */

import wit from "platform:supervisor/log@1.4.0";

import { validText } from "./json-text.js";

class TextEncoder {
  encoding = "utf-8";

  encode(text = "") {
    text = String(text);
    // A code unit has at most three bytes.
    const bytes = new Uint8Array(text.length * 3);
    let length = 0;
    for (let at = 0; at < text.length; at += 1) {
      let code = text.charCodeAt(at);
      if (code < 0x80) {
        bytes[length++] = code;
        continue;
      }
      if (code >= 0xd800 && code < 0xe000) {
        const low = text.charCodeAt(at + 1);
        if (code < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          at += 1;
        } else {
          code = 0xfffd; // half of a pair
        }
      }
      if (code < 0x800) {
        bytes[length++] = 0xc0 | (code >> 6);
      } else {
        if (code < 0x10000) {
          bytes[length++] = 0xe0 | (code >> 12);
        } else {
          bytes[length++] = 0xf0 | (code >> 18);
          bytes[length++] = 0x80 | ((code >> 12) & 0x3f);
        }
        bytes[length++] = 0x80 | ((code >> 6) & 0x3f);
      }
      bytes[length++] = 0x80 | (code & 0x3f);
    }
    return bytes.slice(0, length);
  }
}

class TextDecoder {
  encoding = "utf-8";
  #rest = new Uint8Array(0);
  #atStart = true;

  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    if (!/^\s*(utf-?8|unicode-1-1-utf-8)\s*$/i.test(label)) throw new RangeError(`\`${label}\` is not supported: only UTF-8 is`);
    this.fatal = fatal;
    this.ignoreBOM = ignoreBOM;
  }

  decode(input = new Uint8Array(0), { stream = false } = {}) {
    let bytes = ArrayBuffer.isView(input)
      ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
      : new Uint8Array(input);
    if (this.#rest.length > 0) {
      const joined = new Uint8Array(this.#rest.length + bytes.length);
      joined.set(this.#rest);
      joined.set(bytes, this.#rest.length);
      bytes = joined;
    }
    this.#rest = new Uint8Array(0);
    let at = 0;
    if (this.#atStart && !this.ignoreBOM && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) at = 3;
    const pieces = [];
    decoding: while (at < bytes.length) {
      const end = endOfPiece(bytes, at);
      const text = decodeValid(bytes.subarray(at, end));
      if (text !== undefined) {
        pieces.push(text);
        at = end;
        continue;
      }
      const units = [];
      while (at < end) {
        const [code, length] = decodeOne(bytes, at);
        if (code === INCOMPLETE && stream) {
          this.#rest = bytes.slice(at);
          pieces.push(String.fromCodePoint(...units));
          break decoding;
        }
        if (code < 0 && this.fatal) throw new TypeError("the bytes are not UTF-8");
        units.push(code < 0 ? 0xfffd : code);
        at += length;
      }
      pieces.push(String.fromCodePoint(...units));
    }
    this.#atStart = !stream || (this.#atStart && at === 0);
    return pieces.join("");
  }
}

/** The bytes that are decoded at a time. The arguments of `fromCharCode` are on the stack, so their number is limited. */
const PIECE = 8192;

/** Returns where the piece that begins at `at` ends: between two characters, if the text is valid. */
function endOfPiece(bytes, at) {
  let end = Math.min(at + PIECE, bytes.length);
  for (let back = 0; back < 3 && end < bytes.length && (bytes[end] & 0xc0) === 0x80; back += 1) end -= 1;
  return end;
}

/**
 * Decodes a piece with functions of the engine itself; returns `undefined` if it is not valid UTF-8. In a loop over the
 * bytes, the interpreter needs a second for a megabyte, which is all the time that a call has.
 */
function decodeValid(bytes) {
  const units = String.fromCharCode(...bytes);
  if (!/[\x80-\xff]/.test(units)) return units;
  try {
    return decodeURIComponent(escape(units));
  } catch {
    return undefined;
  }
}

const INVALID = -1;
const INCOMPLETE = -2;

/** Returns the code point at `at`, and its length in bytes. For invalid UTF-8, the length is that of the longest valid
 * beginning. */
function decodeOne(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return [first, 1];
  const length = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  if (length === 0) return [INVALID, 1];
  let code = first & (0x7f >> length);
  for (let index = 1; index < length; index += 1) {
    if (at + index >= bytes.length) return [INCOMPLETE, index];
    const next = bytes[at + index];
    // Excludes overlong forms, halves of pairs, and code points above U+10FFFF.
    const least = index === 1 ? { 0xe0: 0xa0, 0xf0: 0x90 }[first] ?? 0x80 : 0x80;
    const most = index === 1 ? { 0xed: 0x9f, 0xf4: 0x8f }[first] ?? 0xbf : 0xbf;
    if (next < least || next > most) return [INVALID, index];
    code = (code << 6) | (next & 0x3f);
  }
  return [code, length];
}

const shown = (value) => {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value.name}: ${value.message}\n${value.stack ?? ""}`.trimEnd();
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
};
const print =
  (level) =>
  (...values) =>
    wit.write(level, validText(values.map(shown).join(" ")));

globalThis.TextEncoder ??= TextEncoder;
globalThis.TextDecoder ??= TextDecoder;
globalThis.console ??= {
  debug: print("debug"),
  error: print("error"),
  info: print("info"),
  log: print("info"),
  trace: print("trace"),
  warn: print("warn"),
};
