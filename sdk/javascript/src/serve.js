/**
 * Calls a plugin's functions for the requests on their routes. Used only by the file `routes.js`, which the build
 * writes from `plugin.toml`.
 */

import "./globals.js";
import { HttpError } from "./errors.js";
import { answerOf, eventOf } from "./events.js";
import { error as logError } from "./log.js";
import { inSources } from "./places.js";
import { Request } from "./request.js";
import { Response } from "./response.js";

export function serve(routes) {
  for (const [route, handler] of Object.entries(routes)) {
    if (typeof handler !== "function") {
      throw new TypeError(`plugin.toml answers \`${route}\` with a function that the plugin does not export`);
    }
  }
  return {
    async handle(request) {
      try {
        const result = await routes[`${request.method} ${request.route}`](new Request(request));
        const response = result instanceof Response ? result : new Response(result);
        await response.begin();
        return response.toWit(report);
      } catch (error) {
        if (error instanceof HttpError) {
          throw { status: error.status, code: error.code, message: error.message };
        }
        report(error);
        throw error;
      }
    },
  };
}

/** Calls a plugin's function for events on the device. */
export function watch(handler) {
  if (typeof handler !== "function") {
    throw new TypeError("plugin.toml provides `events` with a function that the plugin does not export");
  }
  return {
    async handle(event) {
      try {
        return answerOf(await handler(eventOf(event)));
      } catch (error) {
        if (error instanceof HttpError) throw error.message;
        report(error);
        throw error;
      }
    },
  };
}

/** Logs a bug of the plugin before the call fails, with its place in the plugin's sources. */
function report(error) {
  if (error instanceof Error && typeof error.stack === "string") {
    // The engine prints it as the reason why the call fails.
    error.stack = inSources(error.stack);
  }
  logError(error instanceof Error ? `${error.name}: ${error.message}\n${error.stack ?? ""}`.trimEnd() : String(error));
}
