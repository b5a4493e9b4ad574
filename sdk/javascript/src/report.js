import wit from "platform:supervisor/report@1.4.0";

import { answers } from "./capability.js";

const answering = answers();
const TAGS = { string: "text", number: "number", boolean: "boolean" };

function valueOf(value) {
  const tag = TAGS[typeof value];
  if (tag === undefined) throw new TypeError(`a field is text, a number or a boolean, not ${String(value)}`);
  return { tag, val: value };
}

export const set = answering(async (name, value, { unit } = {}) => {
  await wit.set(name, valueOf(value), unit);
});

export const remove = answering(async (name) => {
  await wit.remove(name);
});
