//! The parts of WASI in Go, whose runtime imports all of them: a plugin gets those that it asks for, and what it uses of the
//! others fails in a way that `docs/plugin-tool.md` describes.

use crate::author::Author;
use crate::languages::can_build;

/// Uses each part of WASI. After a garbage collection, Go polls its timers and files.
const SOURCE: &str = r#"package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"runtime"
	"time"

	"supervisor"
	"supervisor/store"
)

func parts(*supervisor.Request) (*supervisor.Response, error) {
	isLate := time.Now().Year() > 2022
	time.AfterFunc(time.Hour, func() {}).Stop()
	rail, err := os.ReadFile("/rails/5v")
	runtime.GC()
	fmt.Println("collected")
	return supervisor.Textf("%t %s %t", isLate, rail, err != nil), nil
}

func key(*supervisor.Request) (*supervisor.Response, error) {
	key := rand.Text()
	before, err := store.Get("key")
	if err != nil {
		return nil, err
	}
	return supervisor.Textf("%t", key != string(before)), store.Set("key", []byte(key))
}
"#;

const DEVICE: &str = r#"[files]
"/run/rails/5v" = "on"

[[policy.files]]
host = "run/rails"
guest = "/rails"
"#;

/// The names of Go's own directives and of the SDK's module cannot name a module, so two plugins have them.
#[test]
fn a_plugin_in_go_may_have_any_name_and_gets_only_the_parts_of_wasi_that_it_asks_for() {
    if !can_build("go") {
        return;
    }
    let author = Author::new();
    let refused = "status = 500, contains = [\"failed: \", \"the plugin uses random numbers without asking for them\"]";
    for (name, capability, parts, key) in [
        ("plain", "", "false  true", refused),
        ("rails", "clock = \"r\"\n", "true  true", refused),
        // Files have times, so a plugin with `files` knows the time of day.
        ("go", "files = \"r\"\n", "true on false", refused),
        (
            "supervisor",
            "random = \"r\"\n",
            "false  true",
            "status = 200, body = \"true\"",
        ),
    ] {
        author.run(&format!("new {name} --lang go")).succeeds();
        author.write(&format!("{name}/src/plugin.go"), SOURCE);
        let project = author.read(&format!("{name}/plugin.toml"));
        let (before, _) = project.split_once("[routes]\n").unwrap();
        let project = before.replace("[capabilities]\n", &format!("[capabilities]\n{capability}"));
        author.write(
            &format!("{name}/plugin.toml"),
            &format!(
                "{project}[routes]\n\"GET /v3/parts\" = \"parts\"\n\"GET /v3/key\" = \"key\"\n"
            ),
        );
        if capability.starts_with("files") {
            author.write(&format!("{name}/device.toml"), DEVICE);
        }
        let key = format!("[[request]]\nget = \"/v3/key\"\nanswer = {{ {key} }}\n");
        author.write(
            &format!("{name}/test/hello.toml"),
            &format!("[[request]]\nget = \"/v3/parts\"\nanswer = {{ status = 200, body = {parts:?} }}\n{key}{key}"),
        );
        let passed = author.run_in(name, "test").succeeds();
        assert!(
            passed.out.contains("3 passed, 0 failed"),
            "{name}: {}",
            passed.out
        );
    }
}
