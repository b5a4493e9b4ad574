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
  // The bundle imports what the world lacks.
  const name = /module 'platform:supervisor\/([a-z0-9-]+)@/.exec(error.message)?.[1];
  console.error(
    name === undefined
      ? error.message
      : `the sources use \`${name}\`, but [capabilities] in plugin.toml does not ask for it: add \`${name} = "why"\``,
  );
  process.exit(1);
});
writeFileSync(task.component, component);
