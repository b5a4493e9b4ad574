import wit from "platform:supervisor/host-name@1.4.0";

import { answers } from "./capability.js";
import { BadRequest } from "./errors.js";

const answering = answers({ invalid: BadRequest });

export const get = answering(async () => (await wit.get()) ?? undefined);

export const set = answering(async (name) => {
  await wit.set(name);
});
