/** What a plugin of the device supervisor is written with in JavaScript and TypeScript. */

// ---- Handlers

/**
 * A function that `plugin.toml` names for a route. What it returns is the answer: text, what JSON can express,
 * `Uint8Array`, nothing, a `Body`, a `Response`, or a generator, whose pieces are streamed.
 */
export type Handler = (request: Request) => Content | Response | Promise<Content | Response>;

export type Content = string | number | boolean | null | void | object | Uint8Array | Body | Pieces;
/** The pieces of a stream: of an `async function*`, for example. */
export type Pieces = AsyncIterable<string | Uint8Array> | Iterator<string | Uint8Array>;

/** One HTTP request on one of the plugin's routes. The host has checked the caller's key, and has taken it out of the
 * query and the headers. */
export interface Request {
  /** In upper case. */
  readonly method: string;
  /** As it arrived, percent-encoded, without the query. */
  readonly path: string;
  /** The matching pattern of `plugin.toml`. */
  readonly route: string;
  /** What the route's `:names` stand for. `params.as({ id: integer() })` reads them as kinds. */
  readonly params: Values;
  /** The query's parameters, of a repeated one the first. `query.as({ count: integer(3) })` reads them as kinds. */
  readonly query: Values;
  /** As it arrived, without the question mark. */
  readonly queryString: string;
  readonly body: Body;
  /** All header fields, names in lower case. */
  readonly headers: [name: string, value: string][];
  /** The first value of a header field. */
  header(name: string): string | undefined;
  /** Reads a JSON body, as it is or as the kinds of its fields. What does not fit is a 400 that names the field. */
  json(): Promise<any>;
  json<T extends Fields>(fields: T): Promise<Read<T>>;
}

export type Values = { readonly [name: string]: string } & {
  /** Reads the values as kinds. What does not fit is a 400 that names the parameter. */
  as<T extends Fields>(fields: T): Read<T>;
};

/** The body of a request, or one that answers with another. Which form a request's has is the host's choice; `for await`,
 * `bytes` and `text` read either. Returned as an answer, a stream that the host gave passes outside the plugin. */
export class Body implements AsyncIterable<Uint8Array> {
  constructor(content?: Uint8Array | string | AsyncIterable<Uint8Array>);
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array>;
  /** The whole body. Throws `TooLarge` if it has more than `limit` bytes (10 MiB unless it says otherwise). */
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

/** Each has a value for what is missing as its last argument; without it, the value must be there. */
export function text(missing?: string): Kind<string>;
export function integer(missing?: number): Kind<number>;
export function number(missing?: number): Kind<number>;
export function flag(missing?: boolean): Kind<boolean>;
export function oneOf<const T extends string>(choices: readonly T[], missing?: NoInfer<T>): Kind<T>;
/** A value that may be missing, or `null` in JSON. */
export function optional<T>(kind: Kind<T>): Kind<T | undefined>;
/** A JSON list; in a query a parameter that may be repeated. */
export function listOf<T>(kind: Kind<T>): Kind<T[]>;
/** A JSON object. */
export function record<T extends Fields>(fields: T): Kind<Read<T>>;

// ---- Errors, which the caller receives as `{"status":"failed","message":...}`

/** A failure with any status from 400 to 599. `code` is a short word for logs and tests, which the caller does not see. */
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
/** 415: a body of a type that the route does not accept. */
export class UnsupportedType extends Named {}
/** 423: an update lock is held. */
export class Locked extends Named {}
/** 429: too many requests. */
export class TooMany extends Named {}
/** 500: the plugin failed. */
export class Internal extends Named {}
/** 502: something that the plugin queried gave no usable answer. */
export class BadGateway extends Named {}
/** 503: not now; the same request may work later. */
export class Unavailable extends Named {}

// ---- Without a capability

/** The supervisor's log. A message is cut at 4 KiB; after 100 lines in one call the rest are not written. `console`
 * writes there, too. */
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
  /** Waits. The time counts towards the plugin's wall-time limit and not towards its CPU limit. */
  function sleep(milliseconds: number): Promise<void>;
}

/** On whose behalf the plugin is called. */
export namespace caller {
  interface Caller {
    /** What the caller may see and change; grant nothing to `other`. */
    scope: "device" | "device-key" | "local-mode" | "service" | "other";
    /** The number and the name of the service's app, for the scope `service`. */
    appId?: number;
    service?: string;
    /** The plugin that called this action; none for a request. */
    plugin?: string;
  }
  function current(): Caller;
  /** Whether the caller may see and change what belongs to the app with this number. */
  function covers(appId: number, caller?: Caller): boolean;
}

// ---- Events, as `events` and `[schedules]` of plugin.toml ask for them

export interface ServiceChange {
  appId: number;
  service: string;
  /** Missing once nothing is left of the service. */
  status?: string;
  /** Missing if there was nothing of it. */
  before?: string;
}

/** An update of an app, of which no service has been disturbed yet. */
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
  | { kind: "later"; name: string; data: any };

export interface Postponement {
  /** People read it. */
  reason: string;
  /** The device asks again after so many seconds, 10 to 900. */
  seconds: number;
}

export interface Refusal {
  /** People read it. */
  reason: string;
  refuses: true;
}

/** The answer to a gate; nothing opens it. To all other events it is nothing. */
export type GateAnswer = Postponement | Refusal | void;

/** The function that `events` in [provides] of plugin.toml names. What it returns counts for the gates alone. */
export type EventHandler = (event: Event) => Promise<GateAnswer> | GateAnswer;

/** Makes an update wait, or says that a release is not healthy yet. */
export function postpone(reason: string, seconds: number): Postponement;
/** Says that a release is not healthy and will not be: the device goes back to the last healthy one. */
export function refuse(reason: string): Refusal;

// ---- Capabilities, each with a line in [capabilities] of plugin.toml

/** Keys and values that survive restarts. Keys are at most 256 bytes, values at most 64 KiB, all of them together at most
 * 1 MiB and 10,000 keys. Text is stored as UTF-8. */
export namespace store {
  export function get(key: string): Promise<Uint8Array | undefined>;
  export function getText(key: string): Promise<string | undefined>;
  export function getJson(key: string): Promise<any>;
  /** The write has reached the disk when this returns. */
  export function set(key: string, value: Uint8Array | string): Promise<void>;
  export function setJson(key: string, value: unknown): Promise<void>;
  /** Sets a value for a time, after which it is as if it were removed. */
  export function setFor(key: string, value: Uint8Array | string, milliseconds: number): Promise<void>;
  /** Sets a value, or removes it, if the key holds what is expected. Answers whether it did. */
  export function compareAndSet(
    key: string,
    expected: Uint8Array | string | undefined,
    value: Uint8Array | string | undefined,
    milliseconds?: number,
  ): Promise<boolean>;
  /** Changes a text so that no change of another call at the same time is lost. `change` is called again if the value has
   * changed meanwhile. Answers what it returned last. */
  export function update<T extends string | Uint8Array | undefined>(
    key: string,
    change: (value: string | undefined) => T,
  ): Promise<T>;
  /** A missing key is not an error. */
  function _delete(key: string): Promise<void>;
  export { _delete as delete };
  /** The keys that begin with `prefix`, sorted. */
  export function keys(prefix?: string): Promise<string[]>;
}

/** What the supervisor knows of its device. */
export namespace device {
  function identity(): { uuid: string; name: string; deviceType: string; arch: string };
  /** The device state as in `GET /v1/device`. */
  function state(): any;
}

/** The LEDs in the kernel's LED class that the policy grants. */
export namespace led {
  function names(): string[];
  /** One LED in the hands of this call. When it ends, the LED shows again what it showed before. */
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
  /** Has the cloud set values, when it can be reached. */
  function queue(kind: string, values: Record<string, string>): Promise<void>;
}

/** The host's systemd units that the policy names. */
export namespace units {
  function state(unit: string): Promise<{ load: string; active: string; sub: string }>;
  function restart(unit: string): Promise<void>;
}

/** Requests to the routes of the device's own API that the policy names, with the rights of whoever the plugin is called
 * for. */
export namespace api {
  interface ApiResponse {
    status: number;
    ok: boolean;
    contentType?: string;
    body: Uint8Array;
    text(): string;
    /** Throws `BadGateway` if the status is not 200 to 299, or the body is another one. */
    json(): any;
  }
  function send(
    path: string,
    options?: { method?: string; json?: unknown; contentType?: string; body?: Uint8Array | string },
  ): Promise<ApiResponse>;
}

/** Serial ports that the policy names. */
export namespace serial {
  interface Settings {
    /** Bits per second, from 50 to 4000000. */
    baud: number;
    /** 5 to 8; 8 if it is left out. */
    dataBits?: number;
    /** `none` if it is left out. */
    parity?: "none" | "even" | "odd";
    /** 1 or 2; 1 if it is left out. */
    stopBits?: number;
  }
  /** A port that nobody else opens until it is closed, or the call ends. It is raw, and without flow control. */
  class Port {
    static open(name: string, settings: Settings): Promise<Port>;
    /** Waits until something has been received: at most so many bytes of it (65536). Empty once the time has passed. */
    read(most: number, milliseconds: number): Promise<Uint8Array>;
    /** Writes all of it, at most 64 KiB. Text is sent as UTF-8. */
    write(bytes: Uint8Array | string): Promise<void>;
    close(): void;
  }
}

/** GPIO lines, under the names that the policy gives them. The device keeps a line from its first use until the policy no
 * longer gives it to the plugin: an output stays as it was written when the call has ended. */
export namespace gpio {
  interface EdgeEvent {
    /** Whether the line went on. */
    isRising: boolean;
    /** When, on a clock that only goes forward: only differences mean something. */
    nanoseconds: number;
    /** How many edges were lost before this one since the last that this call was given. */
    lost: number;
  }
  /** Whether the line is on. An output that was not written yet is read as it is. */
  function read(name: string): Promise<boolean>;
  /** Switches an output on or off. */
  function write(name: string, on: boolean): Promise<void>;
  /** Waits for an edge of an input; `undefined` once the time has passed (60000 at most). Edges that come between two waits
   * of one call are given to the second, the last 64 of them. */
  function waitEdge(name: string, edge: "rising" | "falling" | "both", milliseconds: number): Promise<EdgeEvent | undefined>;
}

/** Chips on I2C buses, under the names that the policy gives them. */
export namespace i2c {
  /** Writes these bytes (at most 4096), and reads so many (at most 4096) in the same transfer. */
  function writeRead(name: string, bytes: Uint8Array | string, readLength: number): Promise<Uint8Array>;
  /** Reads a register of one byte, by the SMBus command for it. */
  function readByte(name: string, register: number): Promise<number>;
  /** Reads a register of two bytes, by the SMBus command for it: the low byte comes first. */
  function readWord(name: string, register: number): Promise<number>;
  /** Writes a register of one byte, by the SMBus command for it. */
  function writeByte(name: string, register: number, value: number): Promise<void>;
  /** Writes a register of two bytes, by the SMBus command for it: the low byte goes first. */
  function writeWord(name: string, register: number, value: number): Promise<void>;
}

/** Methods of services on the host's system bus that the policy names; the device calls them as root. */
export namespace dbus {
  /** The values of the answer. A variant is `{ type, data }`, a structure an array, and a dictionary whose keys are texts
   * an object. */
  function call(method: {
    service: string;
    path: string;
    interface: string;
    member: string;
    /** The types of the arguments; none if it is left out. */
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

/** Gauges and counters of the plugin's own, which `GET /metrics` shows. */
export namespace metrics {
  function setGauge(name: string, value: number, labels?: Record<string, string>): Promise<void>;
  function addToCounter(name: string, increment?: number, labels?: Record<string, string>): Promise<void>;
}

/** Fields of the plugin's own in what the device tells its cloud, where people read them on the device's page. The supervisor
 * keeps them in memory: a plugin sets them again when it starts, for example on the event `start`. */
export namespace report {
  /** Text of at most 256 bytes in one line, a finite number or a boolean; a unit of at most 16 bytes, for people. */
  function set(name: string, value: string | number | boolean, options?: { unit?: string }): Promise<void>;
  /** One that is not there is no error. */
  function remove(name: string): Promise<void>;
}

/** Requests to the hosts that the policy names. The device resolves the name, checks certificates and follows no redirect.
 * A request has at most 512 KiB of body, an answer at most 1 MiB. */
export namespace http {
  interface HttpResponse {
    status: number;
    ok: boolean;
    /** By name, in lower case. */
    headers: Map<string, string>;
    body: Uint8Array;
    text(): string;
    /** Throws `BadGateway` if the status is not 200 to 299, or the body is another one. */
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
  class TextEncoder {
    encode(text?: string): Uint8Array<ArrayBuffer>;
  }
  class TextDecoder {
    constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
    decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
  }
}
