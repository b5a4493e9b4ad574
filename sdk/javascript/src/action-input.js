/** The input of an action of the plugin's own. */

import { BadRequest } from "./errors.js";
import { parseJson } from "./json-text.js";
import { readJson } from "./kinds.js";

export class ActionInput {
  constructor(bytes) {
    this.bytes = bytes;
    // An action may detach the function from the input: `({ json }) => …`.
    this.json = this.json.bind(this);
    this.text = this.text.bind(this);
  }

  text() {
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(this.bytes);
    } catch {
      throw new BadRequest("the input is not text");
    }
  }

  json(fields) {
    if (this.bytes.length === 0) throw new BadRequest("the input is missing: it must be JSON");
    let value;
    try {
      value = parseJson(this.bytes);
    } catch (error) {
      throw new BadRequest(`the input ${error.message}`);
    }
    return fields === undefined ? value : readJson("the input", value, fields);
  }
}
