/**
 * Calls a plugin's functions for the requests on their routes. Used only by the file `routes.js`, which the build
 * writes from `plugin.toml`.
 */

import "./globals.js";
import { HttpError } from "./errors.js";
import { answerOf, eventOf } from "./events.js";
import { fail } from "./failure.js";
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
        return response.toWit(fail);
      } catch (error) {
        if (error instanceof HttpError) {
          throw { status: error.status, code: error.code, message: error.message };
        }
        fail(error);
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
        fail(error);
      }
    },
  };
}
