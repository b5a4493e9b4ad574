import wit from "platform:supervisor/units@1.4.0";

import { answers } from "./capability.js";
import { NotFound } from "./errors.js";

const answering = answers({ "not-found": NotFound });

export const state = answering(async (unit) => {
  const { loadState, activeState, subState } = await wit.state(unit);
  return { load: loadState, active: activeState, sub: subState };
});

export const restart = answering(async (unit) => {
  await wit.restart(unit);
});
