import wit from "platform:supervisor/proxy-redirector@1.4.0";

import { answers } from "./capability.js";
import { BadRequest, Unavailable } from "./errors.js";
import { text } from "./interface-values.js";
import { redirectedOf, redirectionOf } from "./proxy-values.js";

const answering = answers({ unavailable: Unavailable, invalid: BadRequest });

export const get = answering(async () => {
  const { tag, val } = await wit.get();
  if (tag === "direct") return tag;
  return tag === "unusable" ? { unusable: val } : redirectionOf(val);
});

export const set = answering(async (target) => {
  await wit.set(target == null ? null : redirectedOf(target));
});

export const noProxy = answering(() => wit.noProxy());

export const setNoProxy = answering(async (addresses) => {
  await wit.setNoProxy(addresses.map(text));
});

export const apply = answering(async () => {
  await wit.apply();
});
