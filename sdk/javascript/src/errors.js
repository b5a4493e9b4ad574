/** The errors that a handler answers with. */

import { wholeNumber } from "./interface-values.js";

export class HttpError extends Error {
  constructor(status, code, message) {
    super(String(message));
    this.name = new.target.name;
    this.status = wholeNumber(status, 16);
    this.code = code;
  }
}

const error = (name, status, code) =>
  // A class with its own name, so a trace shows `NotFound` and not `HttpError`.
  ({
    [name]: class extends HttpError {
      constructor(message) {
        super(status, code, message);
      }
    },
  })[name];

export const BadRequest = /* @__PURE__ */ error("BadRequest", 400, "bad-request");
export const Unauthorized = /* @__PURE__ */ error("Unauthorized", 401, "unauthorized");
export const Forbidden = /* @__PURE__ */ error("Forbidden", 403, "forbidden");
export const NotFound = /* @__PURE__ */ error("NotFound", 404, "not-found");
export const Conflict = /* @__PURE__ */ error("Conflict", 409, "conflict");
export const TooLarge = /* @__PURE__ */ error("TooLarge", 413, "too-large");
export const UnsupportedType = /* @__PURE__ */ error("UnsupportedType", 415, "unsupported-type");
export const Locked = /* @__PURE__ */ error("Locked", 423, "locked");
export const TooMany = /* @__PURE__ */ error("TooMany", 429, "too-many");
export const Internal = /* @__PURE__ */ error("Internal", 500, "internal");
export const BadGateway = /* @__PURE__ */ error("BadGateway", 502, "bad-gateway");
export const Unavailable = /* @__PURE__ */ error("Unavailable", 503, "unavailable");
