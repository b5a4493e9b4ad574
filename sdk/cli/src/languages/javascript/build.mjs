// Builds the component of a plugin in JavaScript or TypeScript, as `supervisor-plugin build` requests in the argument.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { componentize } from "componentize-qjs";
import { build } from "esbuild";

const task = JSON.parse(process.argv[2]);
const bundled = await build({
  entryPoints: [task.routes],
  outfile: task.bundle,
  bundle: true,
  format: "esm",
  // What QuickJS supports.
  target: "es2023",
  // The interfaces of the device are the component's imports.
  external: ["platform:*", "wasi:*"],
  alias: {
    "supervisor-sdk/serve": join(task.sdk, "src/serve.js"),
    "supervisor-sdk": join(task.sdk, "src/index.js"),
  },
  write: false,
}).catch(() => process.exit(1)); // esbuild has printed the reason
const source = bundled.outputFiles[0].text;
// For authors who look for the line that an error names.
writeFileSync(task.bundle, source);
const { component } = await componentize({
  witPath: task.wit,
  world: task.world,
  jsSource: source,
  // The runtime that is optimized for size uses tail calls, which are disabled on devices.
  stubWasi: task.stubWasi,
}).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
writeFileSync(task.component, component);
