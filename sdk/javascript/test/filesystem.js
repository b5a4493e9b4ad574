/**
 * `wasi:filesystem` around folders of this machine: those of `globalThis.folders`, each with `host`, `guest` and `write`.
 * Like a device, it refuses paths that lead out of them. `globalThis.opened` counts descriptors that are not closed, and
 * `globalThis.faults` has an error code for each function that should fail, and `globalThis.endsWithLastBytes` says how the
 * end of a file is reported.
 */
import fs from "node:fs";
import { dirname, join, normalize } from "node:path";

const CODES = {
  EISDIR: "is-directory",
  ELOOP: "loop",
  ENAMETOOLONG: "name-too-long",
  ENOENT: "no-entry",
  ENOTDIR: "not-directory",
  EPERM: "is-directory",
};

/** Throws a code as the engine does. */
function fail(code) {
  throw Object.assign(new Error(), { payload: code });
}

/** Calls a function of the interface. */
function call(name, action) {
  globalThis.called.push(name);
  if (globalThis.faults[name]) fail(globalThis.faults[name]);
  try {
    return action();
  } catch (error) {
    throw error.code in CODES ? Object.assign(new Error(), { payload: CODES[error.code] }) : error;
  }
}

class Resource {
  #isOpen = true;

  constructor() {
    globalThis.opened += 1;
  }

  [Symbol.dispose]() {
    if (this.#isOpen) globalThis.opened -= 1;
    this.#isOpen = false;
  }
}

class Entries extends Resource {
  constructor(names) {
    super();
    this.names = names;
  }

  readDirectoryEntry() {
    const name = this.names.shift();
    return name === undefined ? null : { type: "unknown", name };
  }
}

class Descriptor extends Resource {
  constructor(root, path, handle) {
    super();
    Object.assign(this, { root, path, handle });
  }

  /** Returns the host's path of a name in this folder. */
  #path(name, follow = false) {
    if (normalize(name).startsWith("..")) fail("not-permitted");
    const path = join(this.path, name);
    const isInside = (checked) => !fs.existsSync(checked) || `${fs.realpathSync(checked)}/`.startsWith(`${this.root.host}/`);
    if (name !== "." && !isInside(dirname(path))) fail("not-permitted");
    if (follow && !isInside(path)) fail("not-permitted");
    return path;
  }

  #checkWrite() {
    if (!this.root.write) fail("not-permitted");
  }

  getFlags() {
    return { mutateDirectory: this.root.write };
  }

  statAt({ symlinkFollow }, name) {
    return call("statAt", () => {
      const found = (symlinkFollow ? fs.statSync : fs.lstatSync)(this.#path(name, symlinkFollow));
      const kinds = { directory: found.isDirectory(), fifo: found.isFIFO(), "symbolic-link": found.isSymbolicLink() };
      const type = Object.keys(kinds).find((kind) => kinds[kind]) ?? "regular-file";
      return { type, size: globalThis.sizes.get(name) ?? found.size };
    });
  }

  openAt({ symlinkFollow }, name, { create, truncate }, { write }) {
    return call("openAt", () => {
      if (write) this.#checkWrite();
      const path = this.#path(name, symlinkFollow);
      if (fs.statSync(path, { throwIfNoEntry: false })?.isFIFO()) throw new Error("a device would wait for the other end");
      const handle = fs.openSync(path, create && truncate ? "w" : "r");
      return new Descriptor(this.root, path, handle);
    });
  }

  read(length, offset) {
    return call("read", () => {
      const bytes = new Uint8Array(length);
      const count = fs.readSync(this.handle, bytes, 0, length, offset);
      // A device may say that the file ends with its last bytes, or after them.
      const isEnd = globalThis.endsWithLastBytes ? count < length : count === 0;
      return [bytes.subarray(0, count), isEnd];
    });
  }

  write(bytes, offset) {
    // A device may write less than all of it.
    return call("write", () => fs.writeSync(this.handle, bytes, 0, Math.ceil(bytes.length / 2), offset));
  }

  sync() {
    call("sync", () => undefined);
  }

  renameAt(name, folder, newName) {
    call("renameAt", () => fs.renameSync(this.#path(name), folder.#path(newName)));
  }

  unlinkFileAt(name) {
    call("unlinkFileAt", () => {
      this.#checkWrite();
      fs.unlinkSync(this.#path(name));
    });
  }

  readDirectory() {
    return call("readDirectory", () => new Entries(globalThis.names ?? fs.readdirSync(this.path)));
  }
}

globalThis.folders = [];
globalThis.opened = 0;
globalThis.called = [];
globalThis.faults = {};
/** Sizes that files have according to `statAt`. */
globalThis.sizes = new Map();

export default {
  getDirectories: () => globalThis.folders.map((root) => [new Descriptor(root, root.host), root.guest]),
};
