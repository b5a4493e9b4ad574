/** Bodies of requests and answers, as a whole or in pieces. */

import { bytesOf } from "./capability.js";
import { TooLarge } from "./errors.js";

export class Body {
  #content;

  /** `content`: bytes, text, or an async iterable of pieces, such as a stream of the host. */
  constructor(content = new Uint8Array(0)) {
    this.#content = bytesOf(content);
  }

  static ofWit({ tag, val }) {
    return tag === "empty" ? new Body() : new Body(val);
  }

  toWit() {
    const content = this.#content;
    if (!(content instanceof Uint8Array)) return { tag: "stream", val: content };
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
      if (piece.length > 0) yield piece;
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
