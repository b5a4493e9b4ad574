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
    let units = [];
    while (at < bytes.length) {
      const byte = bytes[at];
      if (byte < 0x80) {
        // Most text is ASCII. Without this path, the interpreter reads half a megabyte in more than a second.
        units.push(byte);
        at += 1;
      } else {
        const [code, length] = decodeOne(bytes, at);
        if (code === INCOMPLETE && stream) {
          this.#rest = bytes.slice(at);
          break;
        }
        if (code < 0 && this.fatal) throw new TypeError("the bytes are not UTF-8");
        units.push(code < 0 ? 0xfffd : code);
        at += length;
      }
      // The arguments of `fromCodePoint` are on the stack, so their number is limited.
      if (units.length === 8192) {
        pieces.push(String.fromCodePoint(...units));
        units = [];
      }
    }
    this.#atStart = !stream || (this.#atStart && at === 0);
    pieces.push(String.fromCodePoint(...units));
    return pieces.join("");
  }
}

const INVALID = -1;
const INCOMPLETE = -2;

/** Returns the code point at `at`, which is not ASCII, and its length in bytes. For invalid UTF-8, the length is that of the longest valid
 * beginning. */
function decodeOne(bytes, at) {
  const first = bytes[at];
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
