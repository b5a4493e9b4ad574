import { BadGateway } from "./errors.js";
import { parseJson } from "./json-text.js";

/** An answer of `http` or `api` that has been received completely. */
export class WholeAnswer {
  #answerer;

  constructor(answerer, status, body) {
    this.#answerer = answerer;
    this.status = status;
    this.body = body;
  }

  get ok() {
    return this.status >= 200 && this.status < 300;
  }

  text() {
    return new TextDecoder().decode(this.body);
  }

  json() {
    if (!this.ok) throw new BadGateway(`${this.#answerer} answered ${this.status}`);
    try {
      return parseJson(this.body);
    } catch (error) {
      throw new BadGateway(`an unexpected answer: it ${error.message}`);
    }
  }
}
