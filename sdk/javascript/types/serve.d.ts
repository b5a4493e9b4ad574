import type { EventHandler, Handler } from "./index.js";

/** Returns what a component exports, for functions by `METHOD PATH`. Used by the file that the build writes from
 * `plugin.toml`. */
export function serve(routes: Record<string, Handler>): { handle(request: object): Promise<object> };

/** Like `serve`, for a function that is called for events. */
export function watch(handler: EventHandler): { handle(event: object): Promise<object> };
