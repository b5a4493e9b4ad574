/** Converts what a provider of `boot-config` returns to the form of `wit/boot-config.wit`. */

import { boolean, text } from "./interface-values.js";

export const settingsOf = (settings) => settings.map(({ name, value }) => ({ name: text(name), value: text(value) }));

export function comparisonOf({ changes, refused = [], foreign = [], needsReboot }) {
  return {
    changes: changes.map(text),
    refused: refused.map(({ name, reason }) => ({ name: text(name), reason: text(reason) })),
    foreign: foreign.map(text),
    needsReboot: boolean(needsReboot),
  };
}
