import wit from "platform:supervisor/journal@1.4.0";

import { Body } from "./body.js";
import { answers } from "./capability.js";
import { BadRequest, Unavailable } from "./errors.js";
import { wholeNumber } from "./interface-values.js";

const answering = answers({ invalid: BadRequest, busy: Unavailable, other: Unavailable });

export const read = answering(async (options = {}) => {
  const { all = false, follow = false, unit, identifier, count, since, until, format } = options;
  const stream = await wit.read({
    all,
    follow,
    unit: unit ?? null,
    identifier: identifier ?? null,
    count: count === undefined ? null : wholeNumber(count),
    since: since ?? null,
    until: until ?? null,
    format: format ?? null,
  });
  return new Body(stream);
});
