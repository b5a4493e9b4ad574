/** The SDK for plugins of the device supervisor in JavaScript and TypeScript. */

// ---- Handlers

/**
 * A function that `plugin.toml` names for a route. Its return value is the answer: text, a value that JSON can express,
 * a `Uint8Array`, nothing, a `Body`, a `Response`, or a generator, whose pieces are streamed.
 */
export type Handler = (request: Request) => Content | Response | Promise<Content | Response>;

export type Content = string | number | boolean | null | void | object | Uint8Array | Body | Pieces;
/** The pieces of a stream, for example those that an `async function*` yields. */
export type Pieces = AsyncIterable<string | Uint8Array> | Iterator<string | Uint8Array>;

/** One HTTP request on one of the plugin's routes. The host has checked the caller's key, and has removed it from the
 * query and the headers. */
export interface Request {
  /** In upper case. */
  readonly method: string;
  /** As received, percent-encoded, without the query. */
  readonly path: string;
  /** The matching pattern of `plugin.toml`. */
  readonly route: string;
  /** The values of the route's `:names`. `params.as({ id: integer() })` reads them as kinds. */
  readonly params: Values;
  /** The query's parameters; only the first value of a repeated one. `query.as({ count: integer(3) })` reads them as
   * kinds. */
  readonly query: Values;
  /** As received, without the question mark. */
  readonly queryString: string;
  readonly body: Body;
  /** All header fields, names in lower case. */
  readonly headers: [name: string, value: string][];
  /** Returns the first value of a header field. */
  header(name: string): string | undefined;
  /** Reads a JSON body, unchanged or by the kinds of its fields. A value that does not fit is answered with a 400 that
   * names the field. */
  json(): Promise<any>;
  json<T extends Fields>(fields: T): Promise<Read<T>>;
}

export type Values = { readonly [name: string]: string } & {
  /** Reads the values as kinds. A value that does not fit is answered with a 400 that names the parameter. */
  as<T extends Fields>(fields: T): Read<T>;
};

/** The body of a request or an answer. The host chooses whether a request's body is bytes or a stream; `for await`,
 * `bytes` and `text` read either. If a handler returns a stream of the host as its answer, the data does not pass
 * through the plugin. */
export class Body implements AsyncIterable<Uint8Array> {
  constructor(content?: Uint8Array | string | AsyncIterable<Uint8Array>);
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array>;
  /** Reads the whole body. Throws `TooLarge` if it has more than `limit` bytes (10 MiB by default). */
  bytes(limit?: number): Promise<Uint8Array>;
  text(limit?: number): Promise<string>;
}

/** An answer with its status, headers and content. */
export class Response {
  constructor(
    content?: Content,
    options?: { status?: number; contentType?: string; headers?: Record<string, string> | [string, string][] },
  );
}

// ---- Kinds of values, in `params.as`, `query.as` and `json`

export interface Kind<T> {
  readonly type?: T;
}
export type Fields = Record<string, Kind<unknown>>;
export type Read<T extends Fields> = { [Name in keyof T]: T[Name] extends Kind<infer Value> ? Value : never };

/** The last argument of each kind is the default for a missing value; without it, the value is required. */
export function text(missing?: string): Kind<string>;
/** A whole number from -(2^53 - 1) to 2^53 - 1. */
export function integer(missing?: number): Kind<number>;
/** A finite number. */
export function number(missing?: number): Kind<number>;
export function flag(missing?: boolean): Kind<boolean>;
export function oneOf<const T extends string>(choices: readonly T[], missing?: NoInfer<T>): Kind<T>;
/** A value that may be missing, or `null` in JSON. */
export function optional<T>(kind: Kind<T>): Kind<T | undefined>;
/** A JSON list; in a query, a parameter that may be repeated. */
export function listOf<T>(kind: Kind<T>): Kind<T[]>;
/** A JSON object. */
export function record<T extends Fields>(fields: T): Kind<Read<T>>;

// ---- Errors, which the caller receives as `{"status":"failed","message":...}`

/** A failure with any status from 400 to 599. `code` is a short word for logs and tests; the caller does not see it. */
export class HttpError extends Error {
  constructor(status: number, code: string, message: string);
  readonly status: number;
  readonly code: string;
}
declare class Named extends HttpError {
  constructor(message: string);
}
/** 400: the request does not have the form that the route expects. */
export class BadRequest extends Named {}
/** 401: the caller's key does not give access to this. */
export class Unauthorized extends Named {}
/** 403: the caller is known, but not allowed to do this. */
export class Forbidden extends Named {}
/** 404: what the request names does not exist. */
export class NotFound extends Named {}
/** 409: the request conflicts with the current state. */
export class Conflict extends Named {}
/** 413: the request, or what it asks to store, is too large. */
export class TooLarge extends Named {}
/** 415: the body has a type that the route does not accept. */
export class UnsupportedType extends Named {}
/** 423: an update lock is held. */
export class Locked extends Named {}
/** 429: too many requests. */
export class TooMany extends Named {}
/** 500: the plugin failed. */
export class Internal extends Named {}
/** 502: something that the plugin queried returned no usable answer. */
export class BadGateway extends Named {}
/** 503: not possible now; the same request may succeed later. */
export class Unavailable extends Named {}

// ---- Without a capability

/** The supervisor's log. A message is cut at 4 KiB; after 100 lines in one call the rest are not written. `console`
 * also writes there. */
export namespace log {
  function trace(message: unknown): void;
  function debug(message: unknown): void;
  function info(message: unknown): void;
  function warn(message: unknown): void;
  function error(message: unknown): void;
}

/** The table `[plugins.NAME]` of the supervisor's configuration file; `{}` if there is none. */
export namespace config {
  function read(): any;
}

export namespace timer {
  /** Waits. The time counts towards the plugin's wall-time limit, but not towards its CPU limit. */
  function sleep(milliseconds: number): Promise<void>;
}

/** The caller that the plugin is called for. */
export namespace caller {
  interface Caller {
    /** What the caller may see and change; grant nothing to `other`. */
    scope: "device" | "device-key" | "local-mode" | "service" | "other";
    /** The number and the name of the service's app, for the scope `service`. */
    appId?: number;
    service?: string;
    /** The plugin that called this action; missing for a request. */
    plugin?: string;
  }
  function current(): Caller;
  /** Returns whether the caller may see and change what belongs to the app with this number. */
  function covers(appId: number, caller?: Caller): boolean;
}

// ---- Events, which the plugin requests with `events` and `[schedules]` in plugin.toml

export interface ServiceChange {
  appId: number;
  service: string;
  /** Missing if the service no longer exists. */
  status?: string;
  /** The state when the plugin was last called; missing if the service did not exist. */
  before?: string;
}

/** An update of an app that has not disturbed any service yet. */
export interface Update {
  appId: number;
  appUuid: string;
  services: string[];
  runningCommit?: string;
  targetCommit?: string;
}

/** A release that was installed a short while ago. All of its services run, and those with a health check pass it. */
export interface InstalledRelease {
  appId: number;
  appUuid: string;
  services: string[];
  commit: string;
}

export type Event =
  | { kind: "start"; isFirstOfBoot: boolean }
  | { kind: "schedule"; name: string }
  | { kind: "services"; changes: ServiceChange[] }
  | { kind: "target"; progress: "applying" | "reached" | "stopped" }
  | { kind: "connection"; isConnected: boolean }
  | { kind: "update-gate"; update: Update }
  | { kind: "health-gate"; release: InstalledRelease }
  /** An event that a later version of the interface defines: a plugin that was built for this version receives none. */
  | { kind: "later"; name: string; data: any };

export interface Postponement {
  /** For people. */
  reason: string;
  /** The device asks again after this many seconds, 10 to 900. */
  seconds: number;
}

export interface Refusal {
  /** For people. */
  reason: string;
  refuses: true;
}

/** The answer to a gate. Returning nothing opens the gate, and is the answer to all other events. */
export type GateAnswer = Postponement | Refusal | void;

/** The function that `events` in [provides] of plugin.toml names. Its return value matters only for gates. */
export type EventHandler = (event: Event) => Promise<GateAnswer> | GateAnswer;

/** Answers that an update must wait, or that a release is not healthy yet. */
export function postpone(reason: string, seconds: number): Postponement;
/** Answers that a release is not healthy and will not become so: the device goes back to the last healthy one. */
export function refuse(reason: string): Refusal;

// ---- What the plugin does for others: [actions], and the typed actions in [provides] of plugin.toml

/** The input of an action of the plugin's own, at most 512 KiB. */
export interface ActionInput {
  readonly bytes: Uint8Array;
  /** Returns the input as text. If it is not UTF-8, the caller's call is refused. */
  text(): string;
  /** Reads JSON, unchanged or by the kinds of its fields. If the input does not fit, the caller's call is refused with a
   * message that names the field. */
  json(): any;
  json<T extends Fields>(fields: T): Read<T>;
}

/** A function that [actions] of plugin.toml names. Its return value is the output, at most 512 KiB: a `Uint8Array`
 * unchanged, and anything else as JSON; nothing is `null`. The caller receives the message of an `HttpError`. */
export type Action = (input: ActionInput) => unknown;

/** The status of the operating system. */
export interface OsStatus {
  /** The running version: up to 128 letters, digits and `.`, `-`, `+`, `_` or `~`. */
  running: string;
  /** Whether the running version stays: false from its first boot until `commit`. */
  committed: boolean;
  /** The version that is completely installed in the other place, whether or not the next boot starts it. */
  staged?: string;
  /** The progress of an installation, from 0 to 100, if one is running. */
  installing?: number;
  /** The reason why the last installation failed. */
  failure?: string;
}

/** The object that `os-update` in [provides] of plugin.toml names. The device decides when each step happens
 * (docs/os-update.md), and may repeat it. People read the message of an `HttpError` in the device's plan, events and
 * log. */
export interface OsUpdateProvider {
  /** Returns the status, without changing anything. */
  status(): OsStatus | Promise<OsStatus>;
  /** Begins to install `version` from `source` (an `https://` address or an absolute path) into the place that is not
   * running, and returns: `status` reports the progress. Does nothing if it is already in progress, and does not change
   * what the next boot starts. */
  stage(source: string, version: string): void | Promise<void>;
  /** Makes the next boot start the staged version. */
  activate(): void | Promise<void>;
  /** Makes each later boot start the running version, and ends its trial. */
  commit(): void | Promise<void>;
  /** Makes the next boot start the predecessor of the uncommitted version: before the first boot of that version this is
   * the running version, after it the version that ran before. */
  rollBack(): void | Promise<void>;
}

/** The function that `identify` in [provides] of plugin.toml names. It shows a pattern until `identifyWindow.remaining()` is
 * 0, and then returns; the device ends it soon after. An `HttpError` says why the device cannot be shown. */
export type IdentifyProvider = () => void | Promise<void>;

/** How long the device continues to identify itself: for plugins that provide `identify`. */
export namespace identifyWindow {
  /** Returns the milliseconds that are left. Call this at each step of the pattern, since a second request extends the
   * time. */
  function remaining(): number;
}

/** A variable of the device's target without the cloud's prefix, such as `HOST_CONFIG_gpu_mem`. */
export interface BootSetting {
  name: string;
  value: string;
}

/** A setting that cannot be written. */
export interface BootRefusal {
  name: string;
  /** What is wrong with it, without its name. */
  reason: string;
}

/** How the boot configuration differs from a target. */
export interface BootComparison {
  /** The names of the settings that differ: those to write, and those that were written before and are no longer in the
   * target. Empty if nothing differs. */
  changes: string[];
  /** The settings that cannot be written; none by default. If there is one, nothing is written. */
  refused?: BootRefusal[];
  /** The names of the settings that mean nothing on this board; none by default. */
  foreign?: string[];
  /** Whether the changes take effect only at the next boot. */
  needsReboot: boolean;
}

/** The object that `boot-config` in [provides] of plugin.toml names. Only the device calls it, for the variables `HOST_*` of
 * its target, and may repeat each call. People read the message of an `HttpError`. */
export interface BootConfigProvider {
  /** Returns the settings of the next boot, restricted to those that apply to all boards of the kind. */
  get(): BootSetting[] | Promise<BootSetting[]>;
  /** Compares the configuration with these settings, without changing anything. */
  compare(target: BootSetting[]): BootComparison | Promise<BootComparison>;
  /** Writes the settings that differ, all of them or none, and keeps a copy of the previous configuration. Writes nothing
   * if the comparison refuses a setting. Returns the comparison from before the change. */
  set(target: BootSetting[]): BootComparison | Promise<BootComparison>;
}

/** The proxy that receives the device's connections. */
export interface ProxyServer {
  kind: "socks4" | "socks5" | "http-connect" | "http-relay";
  /** An IPv4 address or a host name. */
  address: string;
  /** 1 to 65535. */
  port: number;
  /** Neither this nor the password contains a control character. */
  login?: string;
  password?: string;
}

/** A name server that is queried over TCP, and so through the proxy. */
export interface DnsRemote {
  /** An IPv4 address or a host name. */
  address: string;
  /** 1 to 65535. */
  port: number;
}

/** Where connections are sent, and optionally the queries for names. */
export interface Redirection {
  proxy: ProxyServer;
  dns?: DnsRemote;
}

/** The configuration of the device's proxy: connections are not redirected, or there is a configuration that names no usable
 * proxy, with the reason, or connections are redirected. */
export type ProxyState = "direct" | { unusable: string } | Redirection;

/** The object that `proxy-redirector` in [provides] of plugin.toml names. Throw a `BadRequest` that names the value if a
 * value cannot be configured; the message of any other `HttpError` says what could not be read, written or applied. */
export interface ProxyRedirectorProvider {
  /** Returns the present configuration. */
  get(): ProxyState | Promise<ProxyState>;
  /** Writes the configuration, or removes it if there is no target, completely or not at all. Keeps other settings as long
   * as there is a configuration. Takes effect with `apply`. */
  set(target: Redirection | undefined): void | Promise<void>;
  /** Returns the addresses and subnets that are reached without the proxy. */
  noProxy(): string[] | Promise<string[]>;
  /** Replaces these addresses and subnets. Takes effect with `apply`. */
  setNoProxy(addresses: string[]): void | Promise<void>;
  /** Makes the redirector use what was written. Open connections may stay as they are. */
  apply(): void | Promise<void>;
}

// ---- Capabilities, each with a line in [capabilities] of plugin.toml

/** Keys and values that survive restarts. Keys are at most 256 bytes, values at most 64 KiB, all of them together at most
 * 1 MiB and 10,000 keys. Text is stored as UTF-8. */
export namespace store {
  export function get(key: string): Promise<Uint8Array | undefined>;
  export function getText(key: string): Promise<string | undefined>;
  export function getJson(key: string): Promise<any>;
  /** Sets a value. The write has reached the disk when the promise resolves. */
  export function set(key: string, value: Uint8Array | string): Promise<void>;
  export function setJson(key: string, value: unknown): Promise<void>;
  /** Sets a value for this long; after that the key no longer exists. */
  export function setFor(key: string, value: Uint8Array | string, milliseconds: number): Promise<void>;
  /** Sets a value, or removes it if `value` is `undefined`, but only if the key has the expected value (`undefined`:
   * does not exist). Returns whether it did. */
  export function compareAndSet(
    key: string,
    expected: Uint8Array | string | undefined,
    value: Uint8Array | string | undefined,
    milliseconds?: number,
  ): Promise<boolean>;
  /** Changes a text without losing changes that other calls make at the same time: if the value has changed in the
   * meantime, `change` is called again. Returns the last value that `change` returned. */
  export function update<T extends string | Uint8Array | undefined>(
    key: string,
    change: (value: string | undefined) => T,
  ): Promise<T>;
  /** Removes a key; a missing key is not an error. */
  function _delete(key: string): Promise<void>;
  export { _delete as delete };
  /** Lists the keys that begin with `prefix`, sorted. */
  export function keys(prefix?: string): Promise<string[]>;
}

/** What the supervisor knows about its device. */
export namespace device {
  function identity(): { uuid: string; name: string; deviceType: string; arch: string };
  /** Returns the device state, as in `GET /v1/device`. */
  function state(): any;
}

/** The LEDs in the kernel's LED class that the policy grants. */
export namespace led {
  function names(): string[];
  /** An LED that only this call can use. When the call ends, the LED returns to its earlier state. */
  class Light {
    private constructor();
    static open(name: string): Light;
    readonly max: number;
    set(brightness: number): void;
    on(): void;
    off(): void;
    close(): void;
  }
}

/** The cloud's records of this device, of the kinds that the policy names. */
export namespace cloud {
  function records(kind: string, fields: string[]): Promise<Record<string, any>[]>;
  /** Queues values for the cloud, which sets them once it can be reached. */
  function queue(kind: string, values: Record<string, string>): Promise<void>;
}

/** The host's systemd units that the policy names. */
export namespace units {
  function state(unit: string): Promise<{ load: string; active: string; sub: string }>;
  function restart(unit: string): Promise<void>;
}

/** Requests to the routes of the device's own API that the policy names, with the rights of the caller that the plugin
 * is called for. */
export namespace api {
  interface ApiResponse {
    status: number;
    ok: boolean;
    contentType?: string;
    body: Uint8Array;
    text(): string;
    /** Reads the body. Throws `BadGateway` if the status is not 200 to 299, or the body is not JSON. */
    json(): any;
  }
  function send(
    path: string,
    options?: { method?: string; json?: unknown; contentType?: string; body?: Uint8Array | string },
  ): Promise<ApiResponse>;
}

/** Other plugins' own actions that the policy names, each by the name of the plugin that provides it, a slash, and the
 * action's own name: `acme-rails/set`. Input and output have at most 512 KiB each. Throws `Conflict` if the other plugin
 * refuses, `BadGateway` if it fails, and `Unavailable` if no plugin of the device has the action. */
export namespace actions {
  function call(action: string, input?: Uint8Array | string): Promise<Uint8Array>;
  /** Like `call`, with JSON. */
  function callJson(action: string, input?: unknown): Promise<any>;
}

/** Serial ports that the policy names. */
export namespace serial {
  interface Settings {
    /** Bits per second, from 50 to 4000000. */
    baud: number;
    /** 5 to 8; 8 by default. */
    dataBits?: number;
    /** `none` by default. */
    parity?: "none" | "even" | "odd";
    /** 1 or 2; 1 by default. */
    stopBits?: number;
  }
  /** An open port. Nobody else can open it until it is closed, or the call ends. It is raw, without flow control. */
  class Port {
    static open(name: string, settings: Settings): Promise<Port>;
    /** Waits until data has been received, and returns at most `most` bytes of it (65536 at most). Returns nothing if
     * the time has passed. */
    read(most: number, milliseconds: number): Promise<Uint8Array>;
    /** Writes all bytes, at most 64 KiB. Text is sent as UTF-8. */
    write(bytes: Uint8Array | string): Promise<void>;
    close(): void;
  }
}

/** Files of the host, in the folders that the policy maps into the plugin (`files` in its section), by whole paths such as
 * `/rails/5v`. A file that is read or written has at most 1 MiB.
 *
 * All functions throw `Forbidden` if the policy does not map the folder, the path leads out of it, or the folder is
 * read-only; `NotFound` if there is no such file or folder; `Conflict` if it is a folder instead of a plain file, or the
 * other way round; `TooLarge` beyond the bounds; and `BadRequest` if no file can have the name. The message names the path
 * and what to do. */
export namespace files {
  /** Returns the bytes of a file. */
  function read(path: string): Promise<Uint8Array>;
  /** Returns a file as text. What is not UTF-8 becomes U+FFFD. */
  function readText(path: string): Promise<string>;
  /** Writes a file completely or not at all, also if the power fails: it is written as `PATH.new` in the same folder, and
   * then renamed. Does nothing if the file already has this content. Text is written as UTF-8. The folder must exist, and
   * the policy must map it with `write = true`. */
  function write(path: string, content: Uint8Array | string): Promise<void>;
  /** Lists the names in a folder, sorted; at most 10,000. */
  function list(folder: string): Promise<string[]>;
  /** Removes a file; a missing file is not an error. */
  function remove(path: string): Promise<void>;
  /** Returns whether there is a file or a folder of this path. */
  function exists(path: string): Promise<boolean>;
}

/** GPIO lines, under the names that the policy gives them. The device keeps a line from its first use until the policy no
 * longer grants it to the plugin: an output keeps its value after the call has ended. */
export namespace gpio {
  interface EdgeEvent {
    /** Whether the line was switched on. */
    isRising: boolean;
    /** The time, by a clock that only goes forward: only differences are meaningful. */
    nanoseconds: number;
    /** The number of edges that were lost between the last one that this call received and this one. */
    lost: number;
  }
  /** Returns whether the line is on. For an output that has not been written yet, this is its present state. */
  function read(name: string): Promise<boolean>;
  /** Switches an output on or off. */
  function write(name: string, on: boolean): Promise<void>;
  /** Waits for an edge of an input; `undefined` once the time has passed (60000 at most). The second wait of a call
   * also returns edges that occurred since the first, up to the last 64. */
  function waitEdge(name: string, edge: "rising" | "falling" | "both", milliseconds: number): Promise<EdgeEvent | undefined>;
}

/** Chips on I2C buses, under the names that the policy gives them. */
export namespace i2c {
  /** Writes these bytes (at most 4096), and reads `readLength` bytes (at most 4096) in the same transfer. */
  function writeRead(name: string, bytes: Uint8Array | string, readLength: number): Promise<Uint8Array>;
  /** Reads a register of one byte, with the SMBus command for it. */
  function readByte(name: string, register: number): Promise<number>;
  /** Reads a register of two bytes, with the SMBus command for it: the low byte comes first. */
  function readWord(name: string, register: number): Promise<number>;
  /** Writes a register of one byte, with the SMBus command for it. */
  function writeByte(name: string, register: number, value: number): Promise<void>;
  /** Writes a register of two bytes, with the SMBus command for it: the low byte comes first. */
  function writeWord(name: string, register: number, value: number): Promise<void>;
}

/** Methods of services on the host's system bus that the policy names; the device calls them as root. */
export namespace dbus {
  /** Calls a method, and returns the values of its answer. A variant is `{ type, data }`, a structure is an array, and
   * a dictionary whose keys are texts is an object. */
  function call(method: {
    service: string;
    path: string;
    interface: string;
    member: string;
    /** The types of the arguments; none by default. */
    signature?: string;
    arguments?: unknown[];
  }): Promise<any[]>;
}

/** The output of the host's journal command. */
export namespace journal {
  function read(options?: {
    all?: boolean;
    follow?: boolean;
    unit?: string;
    identifier?: string;
    count?: number;
    since?: string;
    until?: string;
    format?: string;
  }): Promise<Body>;
}

/** The plugin's own gauges and counters, which `GET /metrics` shows. */
export namespace metrics {
  function setGauge(name: string, value: number, labels?: Record<string, string>): Promise<void>;
  function addToCounter(name: string, increment?: number, labels?: Record<string, string>): Promise<void>;
}

/** The plugin's own fields in the device's report to its cloud, where people read them on the device's page. The
 * supervisor keeps them in memory: set them again after a start, for example on the event `start`. */
export namespace report {
  /** Sets a field: one line of text of at most 256 bytes, a finite number or a boolean; the unit is for people, and has
   * at most 16 bytes. */
  function set(name: string, value: string | number | boolean, options?: { unit?: string }): Promise<void>;
  /** Removes a field; a missing field is not an error. */
  function remove(name: string): Promise<void>;
}

/** Requests to the hosts that the policy names. The device resolves the name, checks certificates and follows no
 * redirects. The body of a request has at most 512 KiB, an answer at most 1 MiB. */
export namespace http {
  interface HttpResponse {
    status: number;
    ok: boolean;
    /** By name, in lower case. */
    headers: Map<string, string>;
    body: Uint8Array;
    text(): string;
    /** Reads the body. Throws `BadGateway` if the status is not 200 to 299, or the body is not JSON. */
    json(): any;
  }
  function send(
    url: string,
    options?: { method?: string; headers?: Record<string, string>; body?: Uint8Array | string },
  ): Promise<HttpResponse>;
}

/** The host's name. */
export namespace hostName {
  function get(): Promise<string | undefined>;
  function set(name: string): Promise<void>;
}

/** Makes the device identify itself, as `POST /v1/blink` does. */
export namespace identify {
  function run(): Promise<void>;
}

/** The program on the host that sends the device's connections through a proxy. A plugin calls the provider of the action
 * `proxy-redirector`, and so cannot provide it as well. All functions throw `Unavailable` if no plugin of the device
 * provides the action, and `Internal` if the configuration cannot be read, written or applied. */
export namespace proxyRedirector {
  /** Returns the present configuration. */
  function get(): Promise<ProxyState>;
  /** Writes the configuration, or removes it if there is no target, completely or not at all. Takes effect with `apply`.
   * Throws `BadRequest` if a value cannot be configured. */
  function set(target: Redirection | undefined): Promise<void>;
  /** Returns the addresses and subnets that are reached without the proxy. */
  function noProxy(): Promise<string[]>;
  /** Replaces these addresses and subnets. Takes effect with `apply`. Throws `BadRequest` if one is not an address. */
  function setNoProxy(addresses: string[]): Promise<void>;
  /** Makes the redirector use what was written. Open connections may stay as they are. */
  function apply(): Promise<void>;
}

/** The update locks of all apps, held until `release` or the end of the call. */
export namespace updateLock {
  class AllLocks {
    private constructor();
    static acquire(options?: { force?: boolean }): Promise<AllLocks>;
    release(): void;
  }
}

// ---- What the SDK adds to the language's own globals

declare global {
  var console: Record<"debug" | "error" | "info" | "log" | "trace" | "warn", (...values: unknown[]) => void>;
  /** Needs the capability `random`, like `Math.random`: without it, both throw an error during a call. `Math.random`
   * works while the plugin is imported, and then returns a number that is the same in every call; `crypto` does not. */
  var crypto: {
    /** Fills a typed array of integers, of at most 65,536 bytes. */
    getRandomValues<T extends Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | BigUint64Array>(array: T): T;
    /** Returns a random UUID, version 4. */
    randomUUID(): string;
  };
  class TextEncoder {
    encode(text?: string): Uint8Array<ArrayBuffer>;
  }
  class TextDecoder {
    constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
    decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
  }
}
