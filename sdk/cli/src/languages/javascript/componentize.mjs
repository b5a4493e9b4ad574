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
  console.error(messageOf(error));
  process.exit(1);
});
writeFileSync(task.component, component);

/** Returns what an error means to the author. */
function messageOf(error) {
  // What the SDK says about plugin.toml, without the stack of the bundle.
  const own = /Error: (plugin\.toml [^\n]*)/.exec(error.message)?.[1];
  if (own !== undefined) return `error: ${own}`;
  // The bundle imports what the world lacks.
  const name = /module 'platform:supervisor\/([a-z0-9-]+)@/.exec(error.message)?.[1];
  if (name === undefined) return error.message;
  return (
    `error: the bundle contains the SDK's part for \`${name}\`, but [capabilities] in plugin.toml does not ask for it: add ` +
    `\`${name} = "why"\`, or import only what the plugin uses, each by its name`
  );
}
