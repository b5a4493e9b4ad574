/** The end of a call that a bug of the plugin has made impossible to finish. */

import wit from "platform:supervisor/log@1.4.0";

import { validText } from "./json-text.js";
import { inSources } from "./places.js";

/**
 * Logs an error with its place in the plugin's sources, and ends the call.
 *
 * An error that is only thrown does not end a call whose stream has begun: the engine closes the stream as if it were
 * complete, so the caller would take half of an answer for all of it. The engine does end a call that passes an
 * argument that does not fit its type, and so the device closes the connection. Its message, which the device keeps as
 * the reason, contains the argument; the device keeps only the first line of it.
 */
export function fail(error) {
  if (error instanceof Error && typeof error.stack === "string") error.stack = inSources(error.stack);
  const shown = error instanceof Error ? `${error.name}: ${error.message}\n${error.stack ?? ""}`.trimEnd() : error;
  const text = validText(shown);
  wit.write("error", text);
  wit.write(text.replace(/\s*\n\s*/g, " "), "");
  throw error;
}
