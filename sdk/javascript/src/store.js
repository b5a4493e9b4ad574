import wit from "platform:supervisor/store@1.4.0";

import { answers } from "./capability.js";
import { Internal, TooLarge } from "./errors.js";
import { bytesOf, milliseconds } from "./interface-values.js";

const answering = answers({ "too-large": TooLarge });
const lifetimeOf = (lifetime) => (lifetime === undefined ? null : milliseconds(lifetime));
const found = (value) => value ?? undefined;
const optional = (value) => (value === undefined || value === null ? null : bytesOf(value));

export const get = answering(async (key) => found(await wit.get(key)));

export async function getText(key) {
  const value = await get(key);
  return value && new TextDecoder().decode(value);
}

export const set = answering(async (key, value) => {
  await wit.set(key, bytesOf(value));
});

export const setFor = answering(async (key, value, milliseconds) => {
  await wit.setFor(key, bytesOf(value), lifetimeOf(milliseconds));
});

export const compareAndSet = answering(async (key, expected, value, milliseconds) =>
  wit.compareAndSet(key, optional(expected), optional(value), lifetimeOf(milliseconds)),
);

export async function update(key, change) {
  for (;;) {
    const before = await get(key);
    const after = change(before && new TextDecoder().decode(before));
    if (await compareAndSet(key, before, after)) return after;
  }
}

const remove = answering(async (key) => {
  await wit.delete(key);
});
export { remove as delete };

export const keys = answering((prefix = "") => wit.keys(prefix));

export async function getJson(key) {
  const value = await getText(key);
  if (value === undefined) return undefined;
  try {
    return JSON.parse(value);
  } catch (error) {
    throw new Internal(`the value of \`${key}\` has an unexpected form: ${error.message}`);
  }
}

export const setJson = (key, value) => set(key, JSON.stringify(value));
