import wit from "platform:supervisor/cloud@1.4.0";

import { answers } from "./capability.js";
import { Internal } from "./errors.js";

const answering = answers();

export const records = answering(async (kind, fields) => {
  const rows = await wit.records(kind, fields);
  try {
    return JSON.parse(rows);
  } catch (error) {
    throw new Internal(`the cloud's \`${kind}\` has an unexpected form: ${error.message}`);
  }
});

export const queue = answering(async (kind, values) => {
  await wit.queue(kind, Object.entries(values));
});
