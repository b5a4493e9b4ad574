import wit from "platform:supervisor/gpio@1.4.0";

import { answers } from "./capability.js";
import { BadGateway, Conflict } from "./errors.js";
import { boolean, milliseconds } from "./interface-values.js";

const answering = answers({ "not-found": BadGateway, busy: Conflict, other: BadGateway });

export const read = answering((name) => wit.read(name));

export const write = answering(async (name, on) => wit.write(name, boolean(on)));

export const waitEdge = answering(async (name, edge, wait) => {
  const event = await wit.waitEdge(name, edge, milliseconds(wait, 32));
  return event ? { ...event, nanoseconds: Number(event.nanoseconds) } : undefined;
});
