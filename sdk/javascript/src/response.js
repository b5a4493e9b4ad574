/** The answer to a request, for handlers that need more than text, JSON or a generator. */

import { Body, pieceOf, pieces } from "./body.js";
import { Internal } from "./errors.js";
import { bytesOf, wholeNumber } from "./interface-values.js";

const JSON_TYPE = "application/json; charset=utf-8";
const TEXT_TYPE = "text/plain; charset=utf-8";

export class Response {
  constructor(content, { status = 200, contentType, headers = {} } = {}) {
    this.content = content;
    this.status = wholeNumber(status, 16);
    this.contentType = contentType;
    this.headers = Array.isArray(headers) ? headers : Object.entries(headers);
  }

  /** Waits for the first piece of a generator: an error before it is still an answer, since nothing has been sent. */
  async begin() {
    const content = this.content;
    if (!isGenerator(content)) return;
    const rest = content[Symbol.asyncIterator]?.() ?? content;
    let first = await rest.next();
    try {
      if (!first.done) first = { done: false, value: pieceOf(first.value) };
    } catch (error) {
      await rest.return?.();
      throw error;
    }
    this.content = (async function* () {
      try {
        for (let piece = first; !piece.done; piece = await rest.next()) yield piece.value;
      } finally {
        // If the caller leaves, the generator ends as well.
        await rest.return?.();
      }
    })();
  }

  /** Converts the answer to the host's form. `fail` is called with an error that ends a stream. */
  toWit(fail) {
    const [body, ownType] = bodyOf(this.content, fail);
    const headers = this.headers.map(([name, value]) => [name.toLowerCase(), bytesOf(String(value))]);
    const contentType = this.contentType ?? ownType;
    if (contentType !== undefined && !headers.some(([name]) => name === "content-type")) {
      headers.unshift(["content-type", bytesOf(contentType)]);
    }
    return { status: this.status, headers, body };
  }
}

/** Returns the body, and its type unless the answer names another one. */
function bodyOf(content, fail) {
  if (content === undefined || content === null) return [{ tag: "empty" }];
  if (typeof content === "string") return [{ tag: "bytes", val: bytesOf(content) }, TEXT_TYPE];
  if (content instanceof Uint8Array) return [{ tag: "bytes", val: content }, "application/octet-stream"];
  if (content instanceof Body) return [content.toWit(fail)];
  if (isGenerator(content)) return [{ tag: "stream", val: pieces(content, fail) }, TEXT_TYPE];
  const text = JSON.stringify(content);
  if (text === undefined) throw new Internal(`failed to write the answer: a ${typeof content} is not JSON`);
  return [{ tag: "bytes", val: bytesOf(text) }, JSON_TYPE];
}

function isGenerator(content) {
  if (typeof content !== "object" || content === null || content instanceof Body) return false;
  return typeof content[Symbol.asyncIterator] === "function" || typeof content.next === "function";
}
