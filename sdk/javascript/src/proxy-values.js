/** Converts between the values of `proxy-redirector` in the SDK, for providers and callers, and those of
 * `wit/proxy-redirector.wit`. */

import { text, wholeNumber } from "./interface-values.js";

const KINDS = ["socks4", "socks5", "http-connect", "http-relay"];

/** Converts a configuration of the interface; nothing stands for none. */
export function redirectionOf(redirection) {
  if (redirection == null) return undefined;
  const { proxy, dns } = redirection;
  const { login, password } = proxy;
  return { proxy: { ...proxy, login: login ?? undefined, password: password ?? undefined }, dns: dns ?? undefined };
}

/** Converts a configuration that a provider has read. */
export function stateOf(state) {
  if (state === "direct") return { tag: "direct" };
  if (state.unusable !== undefined) return { tag: "unusable", val: text(state.unusable) };
  return { tag: "redirected", val: redirectedOf(state) };
}

/** Converts a configuration that connections are redirected by. */
export function redirectedOf({ proxy, dns }) {
  return { proxy: proxyOf(proxy), dns: dns == null ? undefined : remoteOf(dns) };
}

function proxyOf({ kind, address, port, login, password }) {
  // The engine ends the plugin if it receives a word that the interface does not have.
  if (!KINDS.includes(kind)) throw new TypeError(`\`${String(kind)}\` is not one of ${KINDS.join(", ")}`);
  return { kind, ...remoteOf({ address, port }), login: optional(login), password: optional(password) };
}

const remoteOf = ({ address, port }) => ({ address: text(address), port: wholeNumber(port, 16) });

const optional = (value) => (value == null ? undefined : text(value));
