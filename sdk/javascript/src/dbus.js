import wit from "platform:supervisor/dbus@1.4.0";

import { answers } from "./capability.js";
import { BadGateway } from "./errors.js";

const answering = answers({ unreachable: BadGateway, unreadable: BadGateway });

/** Turns the service's own error, with its name, into one of the SDK's errors. */
const refusals = async (call) => {
  try {
    return await call();
  } catch (thrown) {
    const payload = thrown?.payload;
    if (payload?.tag !== "refused") throw thrown;
    throw new BadGateway(`${payload.val.message} (${payload.val.name})`);
  }
};

export const call = answering(async ({ service, path, interface: named, member, signature = "", arguments: given = [] }) => {
  const call = { service, path, interface: named, member, signature, arguments: JSON.stringify(given) };
  return JSON.parse(await refusals(() => wit.call(call)));
});
