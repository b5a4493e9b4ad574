import wit from "platform:supervisor/identify@1.4.0";

import { answers } from "./capability.js";

export const run = answers()(async () => {
  await wit.identify();
});
