/**
 * JSON and texts of a caller, who may be hostile.
 *
 * The engine's own parser calls itself for each level of a value. In the sandbox it runs out of stack before the engine
 * notices, and the call ends as a failure of the plugin, although only the caller is to blame.
 */

/** How deep lists and objects may be nested. */
const DEPTH = 128;

/**
 * Parses JSON, which is bytes or text. The message of the error that it throws continues a sentence such as "the body …":
 * it is not JSON, it is nested too deep, or a text in it contains half of a surrogate pair, which no answer, log line or
 * key of the store can contain.
 */
export function parseJson(content) {
  let text;
  let value;
  try {
    text = typeof content === "string" ? content : new TextDecoder("utf-8", { fatal: true }).decode(content);
    if (!isTooDeep(text)) value = JSON.parse(text);
  } catch (error) {
    throw new SyntaxError(`is not JSON: ${validText(error.message.slice(0, 200))}`);
  }
  // JSON has no value of its own for this.
  if (value === undefined) throw new SyntaxError(`is nested more than ${DEPTH} deep`);
  // Only an escape can contain one, because the text comes from UTF-8.
  if (/\\u[dD][89a-fA-F]/.test(text) && !isText(value)) {
    throw new SyntaxError("contains half of a surrogate pair, which is not text");
  }
  return value;
}

/** Returns the text with U+FFFD for each half of a surrogate pair: a call that passes one to the device ends. */
export const validText = (text) => String(text).replace(/[\ud800-\udfff]/gu, "\ufffd");

/** Returns whether all texts in a JSON value consist of whole characters. */
function isText(value) {
  if (typeof value === "string") return !/[\ud800-\udfff]/u.test(value);
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isText);
  return Object.entries(value).every(([name, inner]) => isText(name) && isText(inner));
}

function isTooDeep(text) {
  if (hasFew(text, "[") && hasFew(text, "{")) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') {
      at = endOfString(text, at);
    } else if (char === "[" || char === "{") {
      depth += 1;
      if (depth > DEPTH) return true;
    } else if (char === "]" || char === "}") {
      depth -= 1;
    }
  }
  return false;
}

/** Returns whether so few of a bracket are in the text that it cannot be too deep. The interpreter needs a second for a
 * loop over some megabytes, and most texts do not need it. */
function hasFew(text, bracket) {
  let count = 0;
  for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
    count += 1;
    if (count > DEPTH / 2) return false;
  }
  return true;
}

/** Returns the position of the quotation mark that ends the string which begins at `at`. */
function endOfString(text, at) {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\") escapes += 1;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}
