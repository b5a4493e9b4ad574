import type { Handler } from "./index.js";

/** What a component exports, for functions by `METHOD PATH`. For the file that the build writes from `plugin.toml`. */
export function serve(routes: Record<string, Handler>): { handle(request: object): Promise<object> };
