/** The request that a handler receives. */

import { Body } from "./body.js";
import { BadRequest, UnsupportedType } from "./errors.js";
import { parseJson } from "./json-text.js";
import { readJson, readTexts } from "./kinds.js";

export class Request {
  #headers;

  constructor({ method, path, route, params, query, headers, body }) {
    this.method = method;
    this.path = path;
    this.route = route;
    this.queryString = query;
    this.params = valuesOf("path parameter", params);
    this.query = valuesOf("query parameter", pairsOf(query));
    this.body = Body.ofWit(body);
    this.#headers = headers;
    // A handler may detach the function from the request: `({ json }) => …`.
    this.json = this.json.bind(this);
    this.header = this.header.bind(this);
  }

  header(name) {
    name = name.toLowerCase();
    const field = this.#headers.find(([found]) => found === name);
    return field && new TextDecoder().decode(field[1]);
  }

  get headers() {
    return this.#headers.map(([name, value]) => [name, new TextDecoder().decode(value)]);
  }

  async json(fields) {
    const declared = (this.header("content-type") ?? "application/json").split(";")[0].trim().toLowerCase();
    if (declared !== "application/json" && !/^application\/.*\+json$/.test(declared)) {
      throw new UnsupportedType(`the body is \`${declared.slice(0, 100)}\`, but must be \`application/json\``);
    }
    if ((this.header("content-encoding") ?? "identity").toLowerCase() !== "identity") {
      throw new UnsupportedType("compressed bodies are not supported: send it without `Content-Encoding`");
    }
    const content = await this.body.bytes();
    if (content.length === 0) throw new BadRequest("the body is missing: it must be JSON");
    let value;
    try {
      value = parseJson(content);
    } catch (error) {
      throw new BadRequest(`the body ${error.message}`);
    }
    return fields === undefined ? value : readJson("the body", value, fields);
  }
}

/** Returns an object with the first value of each name, and with `as`, which reads the values as kinds. */
function valuesOf(source, pairs) {
  const lists = new Map();
  // Without a prototype, since callers choose the names.
  const values = Object.create(null);
  for (const [name, value] of pairs) {
    const list = lists.get(name);
    if (list) {
      list.push(value);
    } else {
      lists.set(name, [value]);
      values[name] = value;
    }
  }
  return Object.defineProperty(values, "as", { value: (fields) => readTexts(source, lists, fields), enumerable: false });
}

function pairsOf(query) {
  return query
    .split("&")
    .filter((part) => part !== "")
    .map((part) => {
      const at = part.indexOf("=");
      return at < 0 ? [decode(part), ""] : [decode(part.slice(0, at)), decode(part.slice(at + 1))];
    });
}

/** Decodes `%41` and `+` as browsers do: an invalid escape stays unchanged. */
function decode(part) {
  const spaced = part.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  const bytes = [];
  for (let at = 0; at < spaced.length; at += 1) {
    const escape = /^%[0-9a-fA-F]{2}/.test(spaced.slice(at, at + 3));
    if (escape) {
      bytes.push(Number.parseInt(spaced.slice(at + 1, at + 3), 16));
      at += 2;
    } else {
      const point = spaced.codePointAt(at);
      if (point < 0x80) {
        bytes.push(point);
      } else {
        const character = String.fromCodePoint(point);
        bytes.push(...new TextEncoder().encode(character));
        at += character.length - 1;
      }
    }
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(bytes));
}
