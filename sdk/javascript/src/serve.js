/**
 * Calls a plugin's functions for the requests on their routes, for events and for its actions. Used only by the file
 * `routes.js`, which the build writes from `plugin.toml`.
 */

import "./globals.js";
import { beginCall } from "./randomness.js";
import { ActionInput } from "./action-input.js";
import { boolean, bytesOf, wholeNumber } from "./capability.js";
import { HttpError, Internal } from "./errors.js";
import { answerOf, eventOf } from "./events.js";
import { fail } from "./failure.js";
import { validText } from "./json-text.js";
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
      beginCall();
      try {
        const result = await routes[`${request.method} ${request.route}`](new Request(request));
        const response = result instanceof Response ? result : new Response(result);
        await response.begin();
        return response.toWit(fail);
      } catch (error) {
        if (error instanceof HttpError) {
          throw { status: error.status, code: error.code, message: validText(error.message) };
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
  return { handle: (event) => perform(async () => answerOf(await handler(eventOf(event)))) };
}

/** Calls a plugin's functions for its own actions, by name. */
export function provideActions(actions) {
  for (const [name, action] of Object.entries(actions)) {
    if (typeof action !== "function") {
      throw new TypeError(`plugin.toml performs the action \`${name}\` with a function that the plugin does not export`);
    }
  }
  return { call: (name, input) => perform(async () => outputOf(await actions[name](new ActionInput(input)))) };
}

/** Calls the functions of a plugin's object that updates the operating system. */
export function provideOsUpdates(provider) {
  for (const name of ["status", "stage", "activate", "commit", "rollBack"]) {
    if (typeof provider?.[name] !== "function") {
      throw new TypeError(`plugin.toml provides \`os-update\` with an object that has no function \`${name}\`, or that the plugin does not export`);
    }
  }
  const step = (name) => (...given) =>
    perform(async () => {
      await provider[name](...given);
    });
  return {
    status: () => perform(async () => osStatusOf(await provider.status())),
    stage: step("stage"),
    activate: step("activate"),
    commit: step("commit"),
    rollBack: step("rollBack"),
  };
}

/** Calls a function of the plugin for an event or an action. An error of the SDK is the answer; any other is a bug. */
async function perform(action) {
  beginCall();
  try {
    return await action();
  } catch (error) {
    if (error instanceof HttpError) throw validText(error.message);
    // The errors of these interfaces are texts, so the engine would pass on a thrown text, or the message of a thrown
    // error, as the answer.
    fail(error);
  }
}

/** Returns the output of an action: bytes unchanged, and anything else as JSON. */
function outputOf(value = null) {
  if (value instanceof Uint8Array) return value;
  const text = JSON.stringify(value);
  if (text === undefined) throw new Internal(`failed to write the output: a ${typeof value} is not JSON`);
  return bytesOf(text);
}

function osStatusOf({ running, committed, staged, installing, failure }) {
  if (installing !== undefined) wholeNumber(installing, 8);
  return { running, committed: boolean(committed), staged, installing, failure };
}
