/**
 * Calls a plugin's functions for the requests on their routes, for events and for its actions. Used only by the file
 * `routes.js`, which the build writes from `plugin.toml`.
 */

import "./globals.js";
import "./randomness.js";
import { ActionInput } from "./action-input.js";
import { comparisonOf, settingsOf } from "./boot-config.js";
import { BadRequest, HttpError, Internal } from "./errors.js";
import { answerOf, eventOf } from "./events.js";
import { fail } from "./failure.js";
import { boolean, bytesOf, text, wholeNumber } from "./interface-values.js";
import { validText } from "./json-text.js";
import { redirectionOf, stateOf } from "./proxy-values.js";
import { Request } from "./request.js";
import { Response } from "./response.js";
import { beginCall } from "./serving.js";

export function serve(routes) {
  for (const [route, handler] of Object.entries(routes)) {
    if (typeof handler !== "function") {
      throw new TypeError(`plugin.toml answers \`${route}\` with a name under which the plugin exports no function`);
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
    throw new TypeError("plugin.toml provides `events` with a name under which the plugin exports no function");
  }
  return { handle: (event) => perform(async () => answerOf(await handler(eventOf(event)))) };
}

/** Calls a plugin's functions for its own actions, by name. */
export function provideActions(actions) {
  for (const [name, action] of Object.entries(actions)) {
    if (typeof action !== "function") {
      throw new TypeError(`plugin.toml performs the action \`${name}\` with a name under which the plugin exports no function`);
    }
  }
  return { call: (name, input) => perform(async () => outputOf(await actions[name](new ActionInput(input)))) };
}

/** Calls the functions of a plugin's object that updates the operating system. */
export function provideOsUpdates(provider) {
  checkProvider(provider, "os-update", ["status", "stage", "activate", "commit", "rollBack"]);
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

/** Calls a plugin's function that shows which device this is. */
export function provideIdentify(show) {
  if (typeof show !== "function") {
    throw new TypeError("plugin.toml provides `identify` with a name under which the plugin exports no function");
  }
  return {
    identify: () =>
      perform(async () => {
        await show();
      }),
  };
}

/** Calls the functions of a plugin's object that reads and writes a board's boot configuration. */
export function provideBootConfig(provider) {
  checkProvider(provider, "boot-config", ["get", "compare", "set"]);
  return {
    get: () => perform(async () => settingsOf(await provider.get())),
    compare: (target) => perform(async () => comparisonOf(await provider.compare(target))),
    set: (target) => perform(async () => comparisonOf(await provider.set(target))),
  };
}

/** Calls the functions of a plugin's object that configures the program that sends connections through a proxy. */
export function provideProxyRedirector(provider) {
  checkProvider(provider, "proxy-redirector", ["get", "set", "noProxy", "setNoProxy", "apply"]);
  const call = (action) => perform(action, proxyErrorOf);
  return {
    get: () => call(async () => stateOf(await provider.get())),
    set: (target) =>
      call(async () => {
        await provider.set(redirectionOf(target));
      }),
    noProxy: () => call(async () => (await provider.noProxy()).map(text)),
    setNoProxy: (addresses) =>
      call(async () => {
        await provider.setNoProxy(addresses);
      }),
    apply: () =>
      call(async () => {
        await provider.apply();
      }),
  };
}

/** Fails the build if the object that provides an action lacks one of its functions. */
function checkProvider(provider, action, names) {
  for (const name of names) {
    if (typeof provider?.[name] !== "function") {
      throw new TypeError(`plugin.toml provides \`${action}\` with a name under which the plugin exports no object with a function \`${name}\``);
    }
  }
}

/** Calls a function of the plugin for an event or an action. An error of the SDK is the answer, in the form that `errorOf`
 * returns; any other is a bug. */
async function perform(action, errorOf = messageOf) {
  beginCall();
  try {
    return await action();
  } catch (error) {
    if (error instanceof HttpError) throw errorOf(error);
    // The errors of most of these interfaces are texts, so the engine would pass on a thrown text, or the message of a
    // thrown error, as the answer.
    fail(error);
  }
}

const messageOf = (error) => validText(error.message);

/** The case `unavailable` means that there is no provider. */
const proxyErrorOf = (error) => ({ tag: error instanceof BadRequest ? "invalid" : "other", val: messageOf(error) });

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
