// Bundles the sources of a plugin in JavaScript or TypeScript into one file, as `supervisor-plugin build` requests in the
// argument.
import { writeFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname, join, relative } from "node:path";

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
    "supervisor-sdk/device-random": join(task.sdk, "src/device-random.js"),
    "supervisor-sdk/without-clock": join(task.sdk, "src/without-clock.js"),
    "supervisor-sdk/serve": join(task.sdk, "src/serve.js"),
    "supervisor-sdk": join(task.sdk, "src/index.js"),
  },
  write: false,
  sourcemap: "external",
}).catch(() => process.exit(1)); // esbuild has printed the reason
const isMap = (file) => file.path.endsWith(".map");
const map = bundled.outputFiles.find(isMap).text;
const bundle = bundled.outputFiles.find((file) => !isMap(file)).text;
const places = placesOf(bundle, JSON.parse(map));
// At the end, where it moves no line. The SDK's `places.js` reads it when the plugin fails.
const source = `${bundle}globalThis.supervisorPlaces = ${JSON.stringify(places)};\n`;
writeFileSync(task.bundle, source);

/**
 * Returns where the lines of the bundle come from: `runs` of successive lines, each with its first line, the number of
 * its source (-1 for lines of esbuild) and the first line there. Lines count from 1.
 */
function placesOf(bundle, map) {
  const found = new SourceMap(map);
  const sources = [];
  const runs = [];
  bundle.split("\n").forEach((text, index) => {
    const entry = found.findEntry(index, Math.max(text.search(/\S/), 0));
    let source = -1;
    let line = 0;
    if (entry.generatedLine === index) {
      const name = nameOf(entry.originalSource);
      source = sources.indexOf(name);
      if (source < 0) source = sources.push(name) - 1;
      line = entry.originalLine + 1;
    }
    const [first, last, begin] = runs.at(-1) ?? [];
    const continues = last === source && (source < 0 || line - begin === index + 1 - first);
    if (!continues) runs.push([index + 1, source, line]);
  });
  return { sources, runs };
}

/** Returns how an author calls a source, which the map names relative to the bundle. */
function nameOf(source) {
  const path = join(dirname(task.bundle), source);
  const inSdk = relative(task.sdk, path);
  return inSdk.startsWith("..") ? relative(dirname(dirname(task.bundle)), path) : join("supervisor-sdk", inSdk);
}
