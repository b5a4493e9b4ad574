/** Bodies of requests and answers, as a whole or in pieces. */

import { Internal, TooLarge } from "./errors.js";
import { bytesOf } from "./interface-values.js";

export class Body {
  #content;

  /** `content`: bytes, text, or an async iterable of pieces, such as a stream of the host. */
  constructor(content = new Uint8Array(0)) {
    this.#content = isStream(content) ? content : bytesOf(content);
  }

  static ofWit({ tag, val }) {
    return tag === "empty" ? new Body() : new Body(val);
  }

  /** Converts the body to the host's form. `fail` is called with an error that ends a stream. */
  toWit(fail) {
    const content = this.#content;
    if (isOfHost(content)) return { tag: "stream", val: content };
    if (!(content instanceof Uint8Array)) return { tag: "stream", val: pieces(content, fail) };
    return content.length > 0 ? { tag: "bytes", val: content } : { tag: "empty" };
  }

  async *[Symbol.asyncIterator]() {
    const content = this.#content;
    this.#content = new Uint8Array(0);
    if (content instanceof Uint8Array) {
      if (content.length > 0) yield content;
      return;
    }
    for await (const piece of content) {
      const bytes = pieceOf(piece);
      if (bytes.length > 0) yield bytes;
    }
  }

  async bytes(limit = 10 << 20) {
    const pieces = [];
    let length = 0;
    for await (const piece of this) {
      length += piece.length;
      if (length > limit) throw new TooLarge(`the body is longer than ${limit} bytes`);
      pieces.push(piece);
    }
    if (pieces.length === 1) return pieces[0];
    const all = new Uint8Array(length);
    let at = 0;
    for (const piece of pieces) {
      all.set(piece, at);
      at += piece.length;
    }
    return all;
  }

  async text(limit) {
    return new TextDecoder().decode(await this.bytes(limit));
  }
}

/** Returns whether `content` is a stream of the host, or something else that yields pieces. */
function isStream(content) {
  if (typeof content !== "object" || content === null || content instanceof Uint8Array) return false;
  return isOfHost(content) || Symbol.asyncIterator in content || Symbol.iterator in content;
}

/** Returns whether `content` is a stream of the host. Its data does not pass through the plugin. */
function isOfHost(content) {
  return typeof content.cancelRead === "function";
}

/** Yields the pieces of a stream as bytes. `fail` is called with an error that ends it. */
export async function* pieces(content, fail) {
  try {
    for await (const piece of content) yield pieceOf(piece);
  } catch (error) {
    fail(error);
  }
}

/** Returns a piece of a stream as bytes. */
export function pieceOf(piece) {
  if (typeof piece === "string" || piece instanceof Uint8Array) return bytesOf(piece);
  const type = piece?.constructor?.name ?? String(piece);
  throw new Internal(
    `failed to write the answer: a generator yields a value of the type \`${type}\`, but a piece must be a text or a ` +
      "`Uint8Array`; `JSON.stringify` writes other values as text",
  );
}
