import wit from "platform:supervisor/actions@1.4.0";

import { answers } from "./capability.js";
import { BadGateway, Conflict, Unavailable } from "./errors.js";
import { bytesOf } from "./interface-values.js";
import { parseJson } from "./json-text.js";

const answering = answers({ unavailable: Unavailable, refused: Conflict, failed: BadGateway });

/** Calls an action of another plugin, with bytes or text, and returns the bytes of its answer. */
export const call = answering(async (action, input = "") => wit.call(action, bytesOf(input)));

export async function callJson(action, input = null) {
  const output = await call(action, JSON.stringify(input));
  try {
    return parseJson(output);
  } catch (error) {
    throw new BadGateway(`\`${action}\` answered something unexpected: it ${error.message}`);
  }
}
