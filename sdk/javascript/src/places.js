/**
 * Places in the plugin's sources, instead of those in the file that the build makes of them.
 *
 * The build appends `globalThis.supervisorPlaces` to that file: runs of its lines, each with its first line, the source
 * and the first line there. Lines count from 1.
 */

/** How the engine names the file that the build makes. */
const FRAME = /componentize-qjs:user\.js:(\d+)(?::\d+)?/g;

/** Returns the text, such as the stack of an error, with the places of the sources. */
export function inSources(text) {
  const { sources, runs } = globalThis.supervisorPlaces ?? { sources: [], runs: [] };
  return text.replace(FRAME, (frame, line) => {
    const run = runs.findLast(([first]) => first <= Number(line));
    return run && run[1] >= 0 ? `${sources[run[1]]}:${run[2] + Number(line) - run[0]}` : frame;
  });
}
