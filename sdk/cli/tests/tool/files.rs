//! Files of the host in plugins in JavaScript, TypeScript and Python, and who else can write their folders.

use std::fs;
use std::os::unix::fs::symlink;

use plugin_test_host::{EmbeddedHost, Host};
use serde_json::{Value, json};

use crate::author::{Author, compiled_code};
use crate::languages::can_build;

/// A plugin that tries what the policy allows and what it does not, and answers with the results, each by its name.
const JAVASCRIPT: &str = r#"import { files } from "supervisor-sdk";

export async function hello() {
  const results = {};
  const attempt = async (name, action) => {
    try {
      results[name] = (await action()) ?? "done";
    } catch (error) {
      results[name] = `${error.name}: ${error.message}`;
    }
  };
  await attempt("read", () => files.readText("/rails/5v"));
  await attempt("largest", async () => (await files.read("/rails/largest")).length);
  await attempt("too large", () => files.read("/rails/large"));
  await attempt("missing", () => files.read("/rails/12v"));
  await attempt("outside", () => files.read("/etc/passwd"));
  await attempt("above", () => files.read("/rails/../secret"));
  await attempt("link out", () => files.read("/rails/link"));
  await attempt("pipe", () => files.read("/rails/pipe"));
  await attempt("write", () => files.write("/rails/5v", "off é"));
  await attempt("read again", () => files.readText("/rails/5v"));
  await attempt("write bytes", () => files.write("/rails/bytes", Uint8Array.of(0, 255)));
  await attempt("write largest", () => files.write("/rails/written", new Uint8Array(1 << 20).fill(1)));
  await attempt("write too large", () => files.write("/rails/written", "a".repeat((1 << 20) + 1)));
  await attempt("write read-only", () => files.write("/settings/a", "a"));
  await attempt("write above", () => files.write("/rails/../secret", "a"));
  await attempt("write planted", () => files.write("/rails/planted", "a"));
  await attempt("write folder", () => files.write("/rails/more", "a"));
  await attempt("remove", () => files.remove("/rails/old"));
  await attempt("remove again", () => files.remove("/rails/old"));
  await attempt("exists", async () => [await files.exists("/rails/bytes"), await files.exists("/rails/old")]);
  await attempt("list", () => files.list("/rails"));
  return results;
}
"#;

/// The same in Python, which reads with its own functions.
const PYTHON: &str = r#"import os

from supervisor_sdk import files


async def hello():
    results = {}

    def attempt(name, action):
        try:
            result = action()
            results[name] = "done" if result is None else result
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"

    def read(path):
        with open(path) as file:
            return file.read()

    attempt("read", lambda: read("/rails/5v"))
    attempt("write", lambda: files.write("/rails/5v", "off é"))
    attempt("read again", lambda: read("/rails/5v"))
    attempt("write bytes", lambda: files.write("/rails/bytes", bytes([0, 255])))
    attempt("write largest", lambda: files.write("/rails/written", bytes([1]) * (256 << 10)))
    attempt("write too large", lambda: files.write("/rails/written", "a" * ((256 << 10) + 1)))
    attempt("write read-only", lambda: files.write("/settings/a", "a"))
    attempt("write outside", lambda: files.write("/etc/a", "a"))
    attempt("write above", lambda: files.write("/rails/../secret", "a"))
    attempt("write planted", lambda: files.write("/rails/planted", "a"))
    attempt("write folder", lambda: files.write("/rails/more", "a"))
    attempt("write pipe", lambda: files.write("/rails/pipe", "a"))
    attempt("write link", lambda: files.write("/rails/link", "a"))
    attempt("list", lambda: sorted(os.listdir("/rails")))
    return results
"#;

/// What the plugin in Python answers.
fn expected_in_python() -> Value {
    let refused = |path: &str| {
        format!(
            "Forbidden: failed to write `{path}`: `files` in the plugin's section of the policy maps the folder without `write \
             = true`, or the path leads out of it"
        )
    };
    json!({
        "read": "on",
        "write": "done",
        "read again": "off é",
        "write bytes": "done",
        "write largest": "done",
        "write too large": "TooLarge: failed to write `/rails/written`: the content has 262145 bytes, and at most 262144 are written",
        "write read-only": refused("/settings/a"),
        "write outside": "NotFound: failed to write `/etc/a`: there is no such folder, or `files` in the plugin's section of the policy does not map it into the plugin",
        "write above": refused("/rails/../secret"),
        "write planted": refused("/rails/planted"),
        "write folder": "Conflict: failed to write `/rails/more`: it is a folder",
        // Files that are renamed take the places of these.
        "write pipe": "done",
        "write link": "done",
        "list": ["5v", "bytes", "large", "largest", "link", "more", "old", "pipe", "planted.new", "written"],
    })
}

/// What the plugin in JavaScript and TypeScript answers.
fn expected() -> Value {
    let outside = |attempt: &str| {
        format!(
            "Forbidden: failed to {attempt}: it leads out of `/rails`, to which `files` in the plugin's section of the policy \
             limits it, or the host does not permit it"
        )
    };
    json!({
        "read": "on",
        "largest": 1 << 20,
        "too large": "TooLarge: failed to read `/rails/large`: the file has 1048577 bytes, and `files` reads and writes at most 1048576 bytes",
        "missing": "NotFound: failed to read `/rails/12v`: there is no such file or folder",
        "outside": "Forbidden: failed to read `/etc/passwd`: the capability `files` reaches only `/rails`, `/settings` of the host here: add the folder to `files` in the plugin's section of the policy",
        "above": outside("read `/rails/../secret`"),
        "link out": outside("read `/rails/link`"),
        "pipe": "Conflict: failed to read `/rails/pipe`: it is not a plain file",
        "write": "done",
        "read again": "off é",
        "write bytes": "done",
        "write largest": "done",
        "write too large": "TooLarge: failed to write `/rails/written`: the content has 1048577 characters, and `files` reads and writes at most 1048576 bytes",
        "write read-only": "Forbidden: failed to write `/settings/a`: the capability `files` may only read `/settings` here: add `write = true` to it in `files` in the plugin's section of the policy",
        "write above": outside("write `/rails/../secret`"),
        "write planted": outside("write `/rails/planted`"),
        "write folder": "Conflict: failed to write `/rails/more`: it is a folder",
        "remove": "done",
        "remove again": "done",
        "exists": [true, false],
        "list": ["5v", "bytes", "large", "largest", "link", "more", "pipe", "planted.new", "written"],
    })
}

/// Returns an author whose plugin has this source and asks for `files`, and has been built.
fn author_with_files(language: &str, source: &str, text: &str) -> Author {
    let author = Author::with_project(language);
    author.write(&format!("rails/{source}"), text);
    author.edit(
        "rails/plugin.toml",
        "store = \"counts the calls\"\n",
        "files = \"switches the rails\"\n",
    );
    author.run_in("rails", "build").succeeds();
    author
}

/// Calls the plugin on a device whose folder `rails` contains files that it reads, and links that lead out of it.
async fn check(author: &Author, expected: Value, written: usize) {
    let policy = r#"[plugins.rails]
grants = ["files"]
files = [
    { host = "run/rails", guest = "/rails", write = true },
    { host = "run/settings", guest = "/settings" },
]
"#;
    let device = Host::new()
        .plugin(author.path("rails/rails.wasm"))
        .policy(policy)
        .file("/run/rails/5v", "on")
        .file("/run/rails/old", "off")
        .file("/run/rails/largest", vec![b'a'; 1 << 20])
        .file("/run/rails/large", vec![b'a'; (1 << 20) + 1])
        .file("/run/rails/more/a", "")
        .file("/run/settings/b", "")
        .file("/run/secret", "secret");
    let host = EmbeddedHost::new(device)
        // The tool has compiled most of it for other tests.
        .code_cache(compiled_code())
        .reuse_functions()
        .start()
        .await;
    let folder = host.root().join("run");
    symlink("../secret", folder.join("rails/link")).unwrap();
    symlink(folder.join("secret"), folder.join("rails/planted.new")).unwrap();
    let pipe = std::process::Command::new("mkfifo")
        .arg(folder.join("rails/pipe"))
        .status();
    assert!(pipe.unwrap().success());

    let answer = host.get("/v3/rails/all").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json(), expected);
    let content = |name: &str| fs::read(folder.join(name)).unwrap();
    assert_eq!(content("rails/5v"), "off é".as_bytes());
    assert_eq!(content("rails/bytes"), [0, 255]);
    assert_eq!(content("rails/written"), vec![1; written]);
    assert_eq!(content("secret"), b"secret");
    assert!(!folder.join("settings/a").exists());
}

#[tokio::test]
async fn a_plugin_in_javascript_reads_and_writes_the_files_that_the_policy_maps_and_no_others() {
    if can_build("javascript") {
        let author = author_with_files("javascript", "src/plugin.js", JAVASCRIPT);
        check(&author, expected(), 1 << 20).await;
    }
}

#[tokio::test]
async fn a_plugin_in_typescript_reads_and_writes_the_files_that_the_policy_maps_and_no_others() {
    if can_build("typescript") {
        let typed = JAVASCRIPT
            .replace(
                "const results = {}",
                "const results: Record<string, unknown> = {}",
            )
            .replace(
                "(name, action)",
                "(name: string, action: () => Promise<unknown>)",
            );
        let author = author_with_files("typescript", "src/plugin.ts", &typed);
        check(&author, expected(), 1 << 20).await;
    }
}

#[tokio::test]
async fn a_plugin_in_python_writes_the_files_that_the_policy_maps_and_no_others() {
    if can_build("python") {
        let author = author_with_files("python", "src/plugin.py", PYTHON);
        check(&author, expected_in_python(), 256 << 10).await;
    }
}

#[test]
fn files_that_plugin_toml_does_not_ask_for_are_found_by_the_build() {
    for (language, source, text, line) in [
        (
            "javascript",
            "src/plugin.js",
            "import { files } from \"supervisor-sdk\";\n\nexport const hello = () => files.list(\"/rails\");\n",
            1,
        ),
        (
            "python",
            "src/plugin.py",
            "\nfrom supervisor_sdk import files\n\n\ndef hello():\n    files.write(\"/rails/5v\", \"on\")\n",
            2,
        ),
    ] {
        if !can_build(language) {
            continue;
        }
        let author = Author::with_project(language);
        author.write(&format!("rails/{source}"), text);
        let built = author.run_in("rails", "build").fails();
        let expected = format!(
            "error: `files` is used in {source}:{line}, but [capabilities] in plugin.toml does not ask for it: add `files = \
             \"why\"`\n"
        );
        assert!(built.err.ends_with(&expected), "{}", built.err);
    }
}
