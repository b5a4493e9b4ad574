import type {
  Action,
  BootConfigProvider,
  EventHandler,
  Handler,
  IdentifyProvider,
  OsUpdateProvider,
  ProxyRedirectorProvider,
} from "./index.js";

/** Returns what a component exports, for functions by `METHOD PATH`. Used by the file that the build writes from
 * `plugin.toml`. */
export function serve(routes: Record<string, Handler>): { handle(request: object): Promise<object> };

/** Like `serve`, for a function that is called for events. */
export function watch(handler: EventHandler): { handle(event: object): Promise<object> };

/** Like `serve`, for actions of the plugin's own by name. */
export function provideActions(actions: Record<string, Action>): {
  call(name: string, input: Uint8Array): Promise<Uint8Array>;
};

/** Like `serve`, for updates of the operating system. */
export function provideOsUpdates(provider: OsUpdateProvider): {
  status(): Promise<object>;
  stage(source: string, version: string): Promise<void>;
  activate(): Promise<void>;
  commit(): Promise<void>;
  rollBack(): Promise<void>;
};

/** Like `serve`, for the function that shows which device this is. */
export function provideIdentify(show: IdentifyProvider): { identify(): Promise<void> };

/** Like `serve`, for a board's boot configuration. */
export function provideBootConfig(provider: BootConfigProvider): {
  get(): Promise<object[]>;
  compare(target: object[]): Promise<object>;
  set(target: object[]): Promise<object>;
};

/** Like `serve`, for the program that sends connections through a proxy. */
export function provideProxyRedirector(provider: ProxyRedirectorProvider): {
  get(): Promise<object>;
  set(target: object | undefined): Promise<void>;
  noProxy(): Promise<string[]>;
  setNoProxy(addresses: string[]): Promise<void>;
  apply(): Promise<void>;
};
