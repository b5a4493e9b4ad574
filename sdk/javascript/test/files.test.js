/** Files of the host, without a device; run with those of `sdk.test.js`. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

const files = await import("../src/files.js");
const { beginCall } = await import("../src/serving.js");

const MOST = 1 << 20;

/** Maps two new folders, one of them read-only, and calls `check` with the path of the first. */
async function withFolders(check) {
  const host = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), "files-"));
  for (const name of ["rails", "settings", "outside"]) fs.mkdirSync(join(host, name));
  fs.writeFileSync(join(host, "outside/secret"), "secret");
  globalThis.folders = [
    { host: join(host, "rails"), guest: "/rails", write: true },
    { host: join(host, "settings"), guest: "/rails/settings", write: false },
  ];
  Object.assign(globalThis, { called: [], faults: {}, endsWithLastBytes: false, sizes: new Map(), names: undefined });
  try {
    await check(join(host, "rails"), host);
    assert.equal(globalThis.opened, 0, "a descriptor is still open");
  } finally {
    fs.rmSync(host, { recursive: true });
  }
}

test("while the plugin is built, there are no files", async () => {
  await assert.rejects(files.read("/rails/5v"), /`files` is used while the plugin is built/);
  beginCall();
});

test("a file is read, written, listed and removed by its path", () =>
  withFolders(async (folder) => {
    assert.equal(await files.exists("/rails/5v"), false);
    await files.write("/rails/5v", "é");
    assert.equal(fs.readFileSync(join(folder, "5v"), "utf8"), "é");
    assert.equal(await files.readText("/rails/5v"), "é");
    const bytes = Uint8Array.from({ length: 200_000 }, (_, index) => index % 251);
    await files.write("/rails/5v", bytes);
    for (const endsWithLastBytes of [false, true]) {
      globalThis.endsWithLastBytes = endsWithLastBytes;
      assert.deepEqual(await files.read("/rails/5v"), bytes);
    }
    await files.write("/rails//empty", new Uint8Array(0));
    assert.deepEqual(await files.read("/rails/empty"), new Uint8Array(0));
    fs.mkdirSync(join(folder, "more"));
    assert.deepEqual(await files.list("/rails"), ["5v", "empty", "more"]);
    assert.deepEqual(await files.list("/rails/more"), []);
    for (const path of ["/rails", "/rails/", "/rails/5v", "/rails/more"]) assert.equal(await files.exists(path), true, path);
    for (const path of ["/rails/12v", "/rails/a/b", "/rails/5v/b"]) assert.equal(await files.exists(path), false, path);
    await files.remove("/rails/5v");
    await files.remove("/rails/5v");
    assert.deepEqual(await files.list("/rails"), ["empty", "more"]);
    // The policy's folder with the longest path decides.
    await assert.rejects(files.write("/rails/settings/a", ""), { name: "Forbidden" });
    assert.deepEqual(await files.list("/rails/settings"), []);
  }));

test("a file is replaced as a whole, or not at all", () =>
  withFolders(async (folder) => {
    await files.write("/rails/5v", "on");
    const before = fs.statSync(join(folder, "5v"));
    await files.write("/rails/5v", "on");
    assert.equal(fs.statSync(join(folder, "5v")).ino, before.ino, "the same content is not written");
    await files.write("/rails/5v", "of");
    assert.notEqual(fs.statSync(join(folder, "5v")).ino, before.ino);

    fs.writeFileSync(join(folder, "5v.new"), "what a power cut has left");
    called.length = 0;
    await files.write("/rails/5v", "on");
    assert.deepEqual(fs.readdirSync(folder), ["5v"]);
    const order = called.filter((name) => ["sync", "renameAt"].includes(name));
    assert.deepEqual(order, ["sync", "renameAt", "sync"]);

    for (const [fault, code] of [["write", "insufficient-space"], ["sync", "io"], ["renameAt", "busy"]]) {
      globalThis.faults = { [fault]: code };
      await assert.rejects(files.write("/rails/5v", "off"), { name: "Internal" }, fault);
      assert.equal(fs.readFileSync(join(folder, "5v"), "utf8"), "on", fault);
      assert.deepEqual(fs.readdirSync(folder), ["5v"], fault);
    }
    // If the temporary file cannot be removed, the first error counts.
    globalThis.faults = { write: "insufficient-space", unlinkFileAt: "io" };
    await assert.rejects(files.write("/rails/5v", "off"), { message: "failed to write `/rails/5v`: the disk is full" });
  }));

test("an error names the path, the reason and what to do", () =>
  withFolders(async (folder) => {
    fs.writeFileSync(join(folder, "5v"), "on");
    fs.mkdirSync(join(folder, "more"));
    fs.symlinkSync("loop", join(folder, "loop"));
    execFileSync("mkfifo", [join(folder, "pipe")]);
    const table = [
      [() => files.read("/rails/12v"), "NotFound", "failed to read `/rails/12v`: there is no such file or folder"],
      [() => files.list("/rails/12v"), "NotFound", "failed to list `/rails/12v`: there is no such file or folder"],
      [() => files.write("/rails/a/b", ""), "NotFound", "failed to write `/rails/a/b`: there is no such file or folder"],
      [() => files.read("/rails/5v/b"), "Conflict", "failed to read `/rails/5v/b`: it is not a folder, or is below a file"],
      [() => files.read("/rails"), "Conflict", "failed to read `/rails`: it is a folder"],
      [() => files.write("/rails", ""), "Conflict", "failed to write `/rails`: it is a folder"],
      [() => files.write("/rails/more", ""), "Conflict", "failed to write `/rails/more`: it is a folder"],
      [() => files.remove("/rails/more"), "Conflict", "failed to remove `/rails/more`: it is a folder"],
      [() => files.read("/rails/loop"), "Conflict", "failed to read `/rails/loop`: its links lead in a circle"],
      [() => files.read("/rails/pipe"), "Conflict", "failed to read `/rails/pipe`: it is not a plain file"],
      [
        () => files.write("/rails/settings/a", ""),
        "Forbidden",
        "failed to write `/rails/settings/a`: the capability `files` may only read `/rails/settings` here: add `write = true` to it in `files` in the plugin's section of the policy",
      ],
      [
        () => files.read("/railsx/a"),
        "Forbidden",
        "failed to read `/railsx/a`: the capability `files` reaches only `/rails`, `/rails/settings` of the host here: add the folder to `files` in the plugin's section of the policy",
      ],
      [() => files.read("5v"), "TypeError", "`5v` is not the whole path of a file: begin it with `/`"],
      [() => files.read(undefined), "TypeError", "undefined is not a text"],
      [() => files.write("/rails/5v", 5), "TypeError", "5 is neither a text nor a Uint8Array"],
    ];
    for (const [attempt, name, message] of table) await assert.rejects(attempt(), { name, message });
    for (const [code, name] of [["name-too-long", "BadRequest"], ["invalid", "BadRequest"], ["access", "Forbidden"], ["io", "Internal"]]) {
      globalThis.faults = { statAt: code };
      await assert.rejects(files.read("/rails/5v"), { name }, code);
    }
    globalThis.faults = {};
    globalThis.folders = [];
    await assert.rejects(files.exists("/rails"), /reaches no folder of the host here: add the folder to `files`/);
  }));

test("a path that leads out of the policy's folder is refused", () =>
  withFolders(async (folder, host) => {
    fs.symlinkSync(join(host, "outside/secret"), join(folder, "link"));
    fs.symlinkSync("../outside", join(folder, "out"));
    fs.symlinkSync(join(host, "outside/secret"), join(folder, "planted.new"));
    for (const path of ["/rails/link", "/rails/out/secret", "/rails/../outside/secret", "/rails/a/../../outside/secret"]) {
      await assert.rejects(files.read(path), { name: "Forbidden", message: /^failed to read .* leads out of `\/rails`/ }, path);
      await assert.rejects(files.exists(path), { name: "Forbidden" }, path);
    }
    await assert.rejects(files.read("/rails/settings/../../outside/secret"), /leads out of `\/rails\/settings`/);
    await assert.rejects(files.list("/rails/out"), { name: "Forbidden" });
    await assert.rejects(files.write("/rails/out/secret", ""), { name: "Forbidden" });
    // Somebody who can write the folder puts a link where the temporary file will be.
    await assert.rejects(files.write("/rails/planted", "planted"), { name: "Forbidden" });
    assert.equal(fs.readFileSync(join(host, "outside/secret"), "utf8"), "secret");
  }));

test("a file that is too large is neither read nor written", () =>
  withFolders(async (folder) => {
    fs.writeFileSync(join(folder, "large"), new Uint8Array(MOST + 1));
    const message = "failed to read `/rails/large`: the file has 1048577 bytes, and `files` reads and writes at most 1048576 bytes";
    await assert.rejects(files.read("/rails/large"), { name: "TooLarge", message });
    assert.ok(!called.includes("read"));
    // A file without a size, or one that has grown since.
    sizes.set("large", 0);
    await assert.rejects(files.read("/rails/large"), { name: "TooLarge", message: /has \d+ bytes or more/ });
    for (const content of [new Uint8Array(MOST + 1), "a".repeat(MOST + 1), "é".repeat(MOST / 2 + 1)]) {
      await assert.rejects(files.write("/rails/5v", content), { name: "TooLarge" });
    }
    assert.deepEqual(fs.readdirSync(folder), ["large"]);
    await files.write("/rails/5v", new Uint8Array(MOST));
    assert.equal((await files.read("/rails/5v")).length, MOST);
    globalThis.names = Array(10_001).fill("a");
    await assert.rejects(files.list("/rails"), { name: "TooLarge", message: /more than the 10000 names/ });
    globalThis.names = Array(10_000).fill("a");
    assert.equal((await files.list("/rails")).length, 10_000);
  }));

test("a long path is shortened in the message", () =>
  withFolders(async () => {
    for (const path of [`/rails/${"a".repeat(5000)}`, "a".repeat(5000)]) {
      await assert.rejects(files.read(path), (error) => error.message.length < 500 && error.message.includes("a…`"));
    }
    // A cut between the halves of a pair would leave one that is not text.
    await assert.rejects(files.read(`/${"😀".repeat(500)}`), (error) => error.message.isWellFormed());
  }));
