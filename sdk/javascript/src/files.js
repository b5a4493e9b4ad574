/**
 * Files of the host, in the folders that the device's policy maps into the plugin. Each operation opens the folder and closes
 * it again, so that nothing of `wasi:filesystem` reaches the plugin.
 */

import preopens from "wasi:filesystem/preopens@0.2.6";

import { BadRequest, Conflict, Forbidden, Internal, NotFound, TooLarge } from "./errors.js";
import { bytesOf, text } from "./interface-values.js";
import { isServing } from "./serving.js";

/** The most bytes that are read from a file or written to one: a plugin has 16 MiB of memory by default, and a file is in it
 * several times while it is received and decoded. */
const MOST_BYTES = 1 << 20;
/** The most names that are listed of a folder. */
const MOST_NAMES = 10_000;
/** The bytes that are read or written at a time. */
const PIECE = 64 << 10;
/** The most characters of a path in a message: a path may come from a request. */
const SHOWN = 200;

/** The operations for which the policy must say `write = true`. */
const CHANGES = ["write", "remove"];
const FOLLOW = { symlinkFollow: true };
/** What a code of `wasi:filesystem` means, and its error. */
const CODES = {
  access: [Forbidden, "the host does not permit it"],
  "file-too-large": [TooLarge, "the file system takes no file of this size"],
  "illegal-byte-sequence": [Internal, "a name in the folder is not UTF-8"],
  "insufficient-space": [Internal, "the disk is full"],
  invalid: [BadRequest, "no file can have this name"],
  "is-directory": [Conflict, "it is a folder"],
  loop: [Conflict, "its links lead in a circle"],
  "name-too-long": [BadRequest, "the name is too long"],
  "no-entry": [NotFound, "there is no such file or folder"],
  "not-directory": [Conflict, "it is not a folder, or is below a file"],
  quota: [Internal, "the disk is full"],
};

export const read = (path) => within("read", path, contentOf);

export const readText = async (path) => new TextDecoder().decode(await read(path));

export const write = (path, value) =>
  within("write", path, (folder, name) => {
    // Encoding a text that is too large might need more memory than there is.
    if (typeof value === "string" && value.length > MOST_BYTES) throw tooLarge("the content", `${value.length} characters`);
    const bytes = bytesOf(value);
    if (bytes.length > MOST_BYTES) throw tooLarge("the content", `${bytes.length} bytes`);
    if (statOf(folder, name, {})?.type === "directory") throw new Conflict("it is a folder");
    if (!hasContent(folder, name, bytes)) replace(folder, name, bytes);
  });

export const list = (path) =>
  within("list", path, (folder, name) => withOpen(folder, name, { directory: true }, { read: true }, namesIn));

export const remove = (path) =>
  within("remove", path, (folder, name) => {
    if (statOf(folder, name, {}) === undefined) return;
    folder.unlinkFileAt(name);
    syncParent(folder, name);
  });

export const exists = (path) => within("find", path, (folder, name) => statOf(folder, name, FOLLOW) !== undefined);

/** Calls `operation` with the folder of the policy that contains a path, and with the rest of the path. */
async function within(verb, given, operation) {
  const path = text(given);
  const shown = path.length > SHOWN ? `${text(path.slice(0, SHOWN))}…` : path;
  if (!path.startsWith("/")) throw new TypeError(`\`${shown}\` is not the whole path of a file: begin it with \`/\``);
  if (!isServing) throw new Error("`files` is used while the plugin is built, when there is no device: use it in a function");
  const folders = preopens.getDirectories();
  let root;
  try {
    const above = folders.filter(([, guest]) => guest === "/" || path === guest || path.startsWith(`${guest}/`));
    root = above.sort(([, one], [, other]) => other.length - one.length)[0];
    if (root === undefined) throw new Forbidden(reachOf(folders));
    const [folder, guest] = root;
    return operation(folder, path.slice(guest.length).replace(/^\/+/, "") || ".");
  } catch (error) {
    throw failureOf(error, `failed to ${verb} \`${shown}\``, () => refusalOf(verb, root));
  } finally {
    for (const [folder] of folders) folder[Symbol.dispose]();
  }
}

function reachOf(folders) {
  const names = folders.map(([, guest]) => `\`${guest}\``).join(", ");
  const reached = names === "" ? "no folder of the host" : `only ${names} of the host`;
  return `the capability \`files\` reaches ${reached} here: add the folder to \`files\` in the plugin's section of the policy`;
}

/** Returns the error of an operation, whose message begins with what failed. */
function failureOf(error, what, refusal) {
  if (error instanceof Forbidden || error instanceof TooLarge || error instanceof Conflict) {
    return new error.constructor(`${what}: ${error.message}`);
  }
  // The engine throws the code as the payload of an `Error`; anything else is a bug, and is thrown unchanged.
  const code = error?.payload;
  if (typeof code !== "string") return error;
  if (code === "read-only" || code === "not-permitted") return new Forbidden(`${what}: ${refusal()}`);
  const [Kind, reason] = CODES[code] ?? [Internal, `the device reports \`${code}\``];
  return new Kind(`${what}: ${reason}`);
}

/** Returns why the device does not permit an operation in a folder of the policy. */
function refusalOf(verb, [folder, guest]) {
  if (CHANGES.includes(verb) && !folder.getFlags().mutateDirectory) {
    return `the capability \`files\` may only read \`${guest}\` here: add \`write = true\` to it in \`files\` in the plugin's section of the policy`;
  }
  return `it leads out of \`${guest}\`, to which \`files\` in the plugin's section of the policy limits it, or the host does not permit it`;
}

const tooLarge = (what, length) =>
  new TooLarge(`${what} has ${length}, and \`files\` reads and writes at most ${MOST_BYTES} bytes`);

/** Calls `use` with an open file or folder, and closes it. */
function withOpen(folder, name, openFlags, flags, use) {
  const descriptor = folder.openAt(FOLLOW, name, openFlags, flags);
  try {
    return use(descriptor);
  } finally {
    descriptor[Symbol.dispose]();
  }
}

function contentOf(folder, name) {
  const { type, size } = folder.statAt(FOLLOW, name);
  // If it is a pipe, the device would wait for its other end.
  if (type !== "regular-file") throw new Conflict(type === "directory" ? "it is a folder" : "it is not a plain file");
  if (size > MOST_BYTES) throw tooLarge("the file", `${size} bytes`);
  return withOpen(folder, name, {}, { read: true }, (file) => {
    const pieces = [];
    let length = 0;
    for (;;) {
      const [piece, isEnd] = file.read(PIECE, length);
      pieces.push(piece);
      length += piece.length;
      // Files of the kernel have no size, and others may grow.
      if (length > MOST_BYTES) throw tooLarge("the file", `${length} bytes or more`);
      if (isEnd) return concatenate(pieces, length);
    }
  });
}

function concatenate(pieces, length) {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** Returns whether a file has this content. A file that cannot be read is replaced. */
function hasContent(folder, name, bytes) {
  try {
    if (Number(folder.statAt(FOLLOW, name).size) !== bytes.length) return false;
    const before = contentOf(folder, name);
    return before.length === bytes.length && before.every((byte, index) => byte === bytes[index]);
  } catch {
    return false;
  }
}

/** Replaces a file: after a power cut there is either the old or the new one, also on FAT. What a power cut leaves under the
 * temporary name is overwritten the next time. */
function replace(folder, name, bytes) {
  const beside = `${name}.new`;
  withOpen(folder, beside, { create: true, truncate: true }, { write: true }, (file) => {
    try {
      for (let at = 0; at < bytes.length; ) at += Number(file.write(bytes.subarray(at, at + PIECE), at));
      file.sync();
      folder.renameAt(beside, folder, name);
    } catch (error) {
      discard(folder, beside);
      throw error;
    }
  });
  syncParent(folder, name);
}

/** Removes what there is of a file that could not be written. */
function discard(folder, name) {
  try {
    folder.unlinkFileAt(name);
  } catch {
    // The plugin gets the first error, which says more.
  }
}

/** Makes renames and removals in the folder of a file survive a power cut. */
function syncParent(folder, name) {
  const end = name.lastIndexOf("/");
  withOpen(folder, end < 0 ? "." : name.slice(0, end), { directory: true }, { read: true }, (parent) => parent.sync());
}

/** Returns what is known of a file or folder; `undefined` if there is none. */
function statOf(folder, name, flags) {
  try {
    return folder.statAt(flags, name);
  } catch (error) {
    if (error?.payload === "no-entry" || error?.payload === "not-directory") return undefined;
    throw error;
  }
}

function namesIn(folder) {
  const entries = folder.readDirectory();
  try {
    const names = [];
    for (;;) {
      const entry = entries.readDirectoryEntry();
      if (entry == null) return names.sort();
      if (names.length === MOST_NAMES) throw new TooLarge(`the folder has more than the ${MOST_NAMES} names that \`files\` lists`);
      names.push(entry.name);
    }
  } finally {
    entries[Symbol.dispose]();
  }
}
