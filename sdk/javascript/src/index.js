/**
 * The SDK for plugins of the device supervisor in JavaScript; `types/index.d.ts` describes all of it.
 *
 * A capability's module is in the component only if the plugin uses it, since the plugin's world has only the
 * capabilities that `plugin.toml` requests. The same applies to `identifyWindow`, which is for providers of `identify`.
 */
export * from "./errors.js";
export { Body } from "./body.js";
export { postpone, refuse } from "./events.js";
export { Response } from "./response.js";
export { flag, integer, listOf, number, oneOf, optional, record, text } from "./kinds.js";

export * as actions from "./actions.js";
export * as api from "./api.js";
export * as caller from "./caller.js";
export * as cloud from "./cloud.js";
export * as config from "./config.js";
export * as dbus from "./dbus.js";
export * as device from "./device.js";
export * as files from "./files.js";
export * as gpio from "./gpio.js";
export * as hostName from "./host-name.js";
export * as http from "./http.js";
export * as i2c from "./i2c.js";
export * as identify from "./identify.js";
export * as identifyWindow from "./identify-window.js";
export * as journal from "./journal.js";
export * as led from "./led.js";
export * as log from "./log.js";
export * as metrics from "./metrics.js";
export * as proxyRedirector from "./proxy-redirector.js";
export * as report from "./report.js";
export * as serial from "./serial.js";
export * as store from "./store.js";
export * as timer from "./timer.js";
export * as units from "./units.js";
export * as updateLock from "./update-lock.js";
