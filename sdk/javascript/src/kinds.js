/**
 * Kinds of values, by which the values of a path, a query or a body are read. Each converts a value to its kind, or
 * throws a `Misfit`, which is answered with a 400 that names the value.
 */

import { BadRequest } from "./errors.js";

const SHOWN = 64;
// The forms of numbers in texts, which docs/plugins.md describes for all languages. `Number` also accepts `0x10`, ` 5`, `+5`
// and an empty text.
const WHOLE = /^-?[0-9]+$/;
const DECIMAL = /^-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;

export class Misfit {
  constructor(text, at = "") {
    this.text = text;
    this.at = at;
  }
}

const shown = (value) => {
  // JSON has no word for a number that is too large.
  const text = typeof value === "string" || typeof value === "number" ? String(value) : JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}...` : text;
};

/** Creates a kind from its functions for text and for JSON. `options` has the default, if the value may be missing. */
function kind(expected, ofText, ofJson, options) {
  const read = (value, isText) => {
    const result = isText ? ofText(value) : ofJson(value);
    if (result === undefined) throw new Misfit(`must be ${expected}, not \`${shown(value)}\``);
    return result;
  };
  return options.length > 0 ? { read, missing: () => options[0] } : { read };
}

export const text = (...missing) =>
  kind("text", (value) => value, (value) => (typeof value === "string" ? value : undefined), missing);

function wholeOfText(value) {
  if (!WHOLE.test(value)) return undefined;
  // The sum is 0 for `-0`.
  const result = Number(value) + 0;
  // Several whole numbers beyond these are the same `number`.
  if (!Number.isSafeInteger(result)) {
    throw new Misfit(`must be from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}, not \`${shown(value)}\``);
  }
  return result;
}

export const integer = (...missing) =>
  kind(
    "a whole number",
    wholeOfText,
    (value) => (Number.isSafeInteger(value) ? value : undefined),
    missing,
  );

export const number = (...missing) =>
  kind(
    "a number",
    (value) => (DECIMAL.test(value) && Number.isFinite(Number(value)) ? Number(value) : undefined),
    (value) => (Number.isFinite(value) ? value : undefined),
    missing,
  );

export const flag = (...missing) =>
  kind(
    "`true` or `false`",
    (value) => (value === "true" || value === "false" ? value === "true" : undefined),
    (value) => (typeof value === "boolean" ? value : undefined),
    missing,
  );

export const oneOf = (choices, ...missing) => {
  const read = (value) => choices.find((choice) => choice === value);
  const names = choices.map((choice) => `\`${choice}\``).join(", ");
  return kind(`one of ${names}`, read, read, missing);
};

export const optional = (inner) => ({
  ...inner,
  read: (value, isText) => (value === null && !isText ? undefined : inner.read(value, isText)),
  missing: () => undefined,
});

export const listOf = (inner) => ({
  isList: true,
  read: (values, isText) => {
    if (!Array.isArray(values)) throw new Misfit(`must be a list, not \`${shown(values)}\``);
    return values.map((value, index) => within(`[${index}]`, () => inner.read(value, isText)));
  },
  ...(inner.isList ? {} : { missing: () => [] }),
});

export const record = (fields) => ({
  read: (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new Misfit(`must be an object, not \`${shown(value)}\``);
    }
    const result = {};
    for (const [name, inner] of Object.entries(fields)) {
      result[name] = within(name, () => {
        if (Object.hasOwn(value, name)) return inner.read(value[name], false);
        if (inner.missing === undefined) throw new Misfit("is missing");
        return inner.missing();
      });
    }
    return result;
  },
});

/** Calls `read`, and adds the place to a misfit that it throws. */
function within(name, read) {
  try {
    return read();
  } catch (misfit) {
    if (!(misfit instanceof Misfit)) throw misfit;
    const joint = misfit.at === "" || misfit.at.startsWith("[") ? "" : ".";
    throw new Misfit(misfit.text, `${name}${joint}${misfit.at}`);
  }
}

/** Reads values by name as the kinds of `fields`. Each value is a list of texts; `source` says where they come from. */
export function readTexts(source, values, fields) {
  const result = {};
  for (const [name, inner] of Object.entries(fields)) {
    const found = values.get(name) ?? [];
    try {
      if (found.length === 0) {
        if (inner.missing === undefined) throw new Misfit("is missing");
        result[name] = inner.missing();
      } else if (inner.isList) {
        result[name] = inner.read(found, true);
      } else {
        if (found.length > 1) throw new Misfit("is given more than once");
        result[name] = inner.read(found[0], true);
      }
    } catch (misfit) {
      if (!(misfit instanceof Misfit)) throw misfit;
      throw new BadRequest(`${source} \`${name}${misfit.at}\` ${misfit.text}`);
    }
  }
  return result;
}

/** Reads a JSON object as the kinds of `fields`. `source` says where it comes from. */
export function readJson(source, value, fields) {
  try {
    return record(fields).read(value);
  } catch (misfit) {
    if (!(misfit instanceof Misfit)) throw misfit;
    const place = misfit.at === "" ? source : `field \`${misfit.at}\` of ${source}`;
    throw new BadRequest(`${place} ${misfit.text}`);
  }
}
