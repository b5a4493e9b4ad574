import wit from "platform:supervisor/actions@1.4.0";

import { answers, bytesOf } from "./capability.js";
import { BadGateway, Conflict, Unavailable } from "./errors.js";

const answering = answers({ unavailable: Unavailable, refused: Conflict, failed: BadGateway });

/** Calls an action of another plugin, with bytes or text, and returns the bytes of its answer. */
export const call = answering(async (action, input = "") => wit.call(action, bytesOf(input)));

export async function callJson(action, input = null) {
  const output = new TextDecoder().decode(await call(action, JSON.stringify(input)));
  try {
    return JSON.parse(output);
  } catch (error) {
    throw new BadGateway(`\`${action}\` answered something unexpected: ${error.message}`);
  }
}
