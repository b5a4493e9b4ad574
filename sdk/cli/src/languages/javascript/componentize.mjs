// Makes a component of the bundle of a plugin in JavaScript or TypeScript, as `supervisor-plugin build` requests in the
// argument.
import { readFileSync, writeFileSync } from "node:fs";

import { componentize } from "componentize-qjs";

const task = JSON.parse(process.argv[2]);
const { component } = await componentize({
  witPath: task.wit,
  world: task.world,
  jsSource: readFileSync(task.bundle, "utf8"),
  // The runtime that is optimized for size uses tail calls, which are disabled on devices.
  stubWasi: task.stubWasi,
}).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
writeFileSync(task.component, component);
