//! Plugins in other languages: the template of each, and the example in `examples/`, built with the language's own
//! tools and run in the device's runtime.

use std::fs;
use std::process::Command;

use tests::guest;

use crate::author::Author;
use crate::hostile_requests;

/// Returns whether this machine has the programs that the tool needs for a language; the tool installs the others
/// itself. Without them, the tests of the language are skipped, except in CI.
pub(crate) fn can_build(language: &str) -> bool {
    let programs: &[&str] = match language {
        "javascript" | "typescript" => &["node", "npm"],
        _ => &["python3"],
    };
    let missing = programs.iter().find(|program| {
        let started = Command::new(program).arg("--version").output();
        !started.is_ok_and(|output| output.status.success())
    });
    if let Some(program) = missing {
        assert!(
            std::env::var_os("CI").is_none(),
            "`{program}` is missing, which building in {language} takes"
        );
        eprintln!("skipped: `{program}` is missing");
    }
    missing.is_none()
}

/// Checks that the plugin of a new project, which has been built, passes the project's own test and imports nothing that
/// the project does not ask for.
pub(crate) fn check_new_project(author: &Author, language: &str) {
    let test = author.run("test rails/rails.wasm --project rails");
    let passed = test.succeeds();
    assert!(passed.out.contains("3 passed, 0 failed"), "{}", passed.out);
    // It imports only what plugin.toml asks for.
    let file = author.run("--json inspect rails/rails.wasm").succeeds();
    let imports = file.json()["imports"].to_string();
    assert!(imports.contains("platform:supervisor/store"), "{imports}");
    assert!(!imports.contains("wasi:"), "{imports}");
    let sdk = serde_json::json!({ "name": "supervisor-sdk", "version": env!("CARGO_PKG_VERSION") });
    assert_eq!(file.json()["sdk"], sdk);
    // The engine's memory and those of two components that replace imports: a call takes three places.
    let checked = author.run("check rails/rails.wasm").succeeds();
    let fewer = "5 calls at a time on a device of 32 bits, rather than the 8 of `concurrency`";
    let is_javascript = matches!(language, "javascript" | "typescript");
    assert_eq!(
        checked.out.contains(fewer),
        is_javascript,
        "{}",
        checked.out
    );
}

/// Checks that the example counts in the store, waits, streams, and refuses requests.
fn example(language: &str, requests: usize) {
    if !can_build(language) {
        return;
    }
    let author = Author::new();
    let name = format!("hello-{language}");
    author.copy_example(&name);
    if language == "c" {
        // A project of somebody else could contain a module with the name of the compiler's.
        let module = format!("{name}/ziglang.py");
        author.write(
            &module,
            "raise SystemExit(\"the project's own module was run\")\n",
        );
    }
    let file = if language == "rust" {
        // A member of this repository's workspace, which is built with it.
        let file = format!("{name}.wasm");
        fs::copy(guest("hello_rust"), author.path(&name).join(&file)).unwrap();
        file
    } else {
        String::new()
    };
    let passed = author.run_in(&name, &format!("test {file}")).succeeds();
    let expected = format!("{requests} passed, 0 failed");
    assert!(passed.out.contains(&expected), "{}", passed.out);
    if language != "wasi-http" {
        hostile_requests::are_refused(&author, language);
    }
}

#[test]
fn the_example_in_c_counts_waits_and_streams() {
    example("c", 6);
}

#[test]
fn the_example_in_go_counts_waits_and_streams() {
    example("go", 9);
}

#[test]
fn the_example_in_javascript_counts_waits_and_streams() {
    example("javascript", 9);
}

#[test]
fn the_example_in_rust_counts_waits_and_streams() {
    example("rust", 9);
}

#[test]
fn the_example_in_typescript_counts_waits_and_streams() {
    example("typescript", 9);
}

#[test]
fn the_example_in_python_counts_waits_and_streams() {
    example("python", 9);
}

/// A component whose framework does not know the supervisor.
#[test]
fn the_example_of_wasi_http_answers_waits_and_streams() {
    example("wasi-http", 4);
}

/// A package index, or a mirror that `pip` is set to.
#[test]
fn a_compiler_that_a_package_index_has_replaced_is_not_installed() {
    if !can_build("c") {
        return;
    }
    let author = Author::with_project("c");
    fs::create_dir(author.path("mirror")).unwrap();
    author.write("mirror/ziglang-0.17.1-py3-none-any.whl", "another compiler");
    let shown = |below: &str| author.path(below).display().to_string();
    let refused = author.shell(
        "cd rails && supervisor-plugin build",
        &[
            ("PIP_NO_INDEX", "1".to_owned()),
            ("PIP_FIND_LINKS", shown("mirror")),
            // Without the compiler that other tests have installed.
            ("XDG_CACHE_HOME", shown("cache")),
        ],
    );
    let refused = refused.fails();
    for expected in [
        "PACKAGES DO NOT MATCH THE HASHES",
        "failed to install ziglang==0.17.1",
    ] {
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
}

#[test]
fn a_component_that_is_built_already_becomes_a_plugin() {
    let author = Author::new();
    let component = guest("wasi_http_guests");
    fs::copy(component, author.path("shop_component.wasm")).unwrap();
    author
        .run("new shop --component shop_component.wasm")
        .succeeds();
    let device = author.read("shop/device.toml");
    assert!(device.contains("[plugins.shop]"), "{device}");
    // The capability for its import is declared already.
    let declared = author.read("shop/plugin.toml");
    assert!(
        declared.contains("\nhttp = \"its component imports wasi:http/outgoing-handler\"\n"),
        "{declared}"
    );
    author.edit("shop/plugin.toml", "/v3/shop/items", "/v3/shop/created");
    fs::create_dir(author.path("shop/test")).unwrap();
    author.write(
        "shop/test/shop.toml",
        "[[request]]\nget = \"/v3/shop\"\nanswer = { status = 200, body = \"the root\" }\n\
         [[request]]\nget = \"/v3/shop/created\"\nanswer = { status = 201, body = \"five\" }\n",
    );
    let passed = author.run_in("shop", "test").succeeds();
    assert!(passed.out.contains("2 passed, 0 failed"), "{}", passed.out);
    // A component that is a plugin already is refused.
    let again = author.run("new again --component shop/shop.wasm").fails();
    assert!(
        again
            .err
            .contains("it has a manifest, so it is a plugin already"),
        "{}",
        again.err
    );
}

#[test]
fn a_file_that_is_not_a_component_does_not_become_a_plugin() {
    let author = Author::new();
    author.write("noise.wasm", "noise");
    author.write("core.wasm", "\0asm\u{1}\0\0\0");
    for (file, expected) in [
        ("noise.wasm", "it is not WebAssembly"),
        ("core.wasm", "it is a core module and not a component"),
        ("missing.wasm", "cannot read `missing.wasm`"),
    ] {
        let made = author.run(&format!("new shop --component {file}")).fails();
        assert!(made.err.contains(expected), "{}", made.err);
    }
    let made = author.run("new shop --lang component").fails();
    assert!(made.err.contains("`--component FILE`"), "{}", made.err);
    assert!(!author.path("shop").exists());
}

#[test]
fn a_command_that_fails_is_named() {
    let author = Author::new();
    author.copy_example("hello-wasi-http");
    author.edit("hello-wasi-http/plugin.toml", "cargo build", "cargo fly");
    let built = author.run_in("hello-wasi-http", "build").fails();
    assert!(
        built
            .err
            .contains("the `command` of plugin.toml failed: `cargo fly"),
        "{}",
        built.err
    );
}

#[test]
fn a_handler_that_is_no_function_of_the_language_is_refused_before_the_build() {
    for (language, shown) in [
        ("c", "C"),
        ("go", "Go"),
        ("javascript", "JavaScript"),
        ("typescript", "JavaScript"),
        ("python", "Python"),
    ] {
        let author = Author::with_project(language);
        let project = author.read("rails/plugin.toml");
        for (named, purpose) in [
            (
                project.replace("\"hello\"", "\"say hello\""),
                "answers `GET /v3/rails/:name`",
            ),
            (
                format!("{project}\n[actions]\nset = \"say hello\"\n"),
                "performs the action `set`",
            ),
        ] {
            author.write("rails/plugin.toml", &named);
            let built = author.run_in("rails", "build").fails();
            let expected =
                format!("`say hello`, which {purpose}, is not the name of a function in {shown}");
            assert!(built.err.contains(&expected), "{}", built.err);
        }
    }
}

#[test]
fn a_used_capability_missing_from_the_manifest_is_named_before_the_build() {
    for (language, place) in [
        ("c", "src/plugin.c:4"),
        ("go", "src/plugin.go:8"),
        ("javascript", "src/plugin.js:2"),
        ("typescript", "src/plugin.ts:2"),
        ("python", "src/plugin.py:3"),
    ] {
        let author = Author::with_project(language);
        author.edit("rails/plugin.toml", "store = \"counts the calls\"\n", "");
        let built = author.run_in("rails", "build").fails();
        let expected = format!(
            "error: `store` is used in {place}, but [capabilities] in plugin.toml does not ask for it: add `store = \"why\"`\n"
        );
        assert!(built.err.ends_with(&expected), "{}", built.err);
    }
}

#[test]
fn a_capability_that_a_package_or_header_below_uses_is_named_after_the_build_has_failed() {
    for (language, file, source, part, place) in [
        (
            "go",
            "plugin.go",
            "package main\n\nimport (\n\t\"example.com/rails/src/own\"\n\t\"supervisor\"\n)\n\n\
             func hello(r *supervisor.Request) (*supervisor.Response, error) {\n\treturn supervisor.Text(own.Name()), nil\n}\n",
            (
                "own/own.go",
                "package own\n\nimport \"supervisor/store\"\n\nfunc Name() string {\n\tstore.Delete(\"a\")\n\treturn \"a\"\n}\n",
            ),
            "src/own/own.go:3",
        ),
        (
            "c",
            "plugin.c",
            "#include \"own/own.h\"\n\nvoid hello(request_t *request) {\n    store_delete(\"a\");\n    answer_textf(request, \"a\");\n}\n",
            (
                "own/own.h",
                "#include \"supervisor.h\"\n#include \"store.h\"\n",
            ),
            "src/own/own.h:2",
        ),
    ] {
        if !can_build(language) {
            continue;
        }
        let author = Author::with_project(language);
        author.edit("rails/plugin.toml", "store = \"counts the calls\"\n", "");
        author.write(&format!("rails/src/{file}"), source);
        fs::create_dir(author.path("rails/src/own")).unwrap();
        author.write(&format!("rails/src/{}", part.0), part.1);
        let built = author.run_in("rails", "build").fails();
        let expected = format!(
            "error: `store` is used in {place}, but [capabilities] in plugin.toml does not ask for it: add `store = \"why\"`\n"
        );
        assert!(built.err.ends_with(&expected), "{}", built.err);
    }
}

/// The bundler cannot see which parts of the SDK such a source uses.
#[test]
fn a_bundle_with_more_than_the_plugin_asks_for_says_what_to_do() {
    if !can_build("javascript") {
        return;
    }
    let author = Author::with_project("javascript");
    author.write(
        "rails/src/plugin.js",
        "import * as sdk from \"supervisor-sdk\";\nconst { log } = sdk;\nexport function hello() {\n  log.info(\"a\");\n}\n",
    );
    let built = author.run_in("rails", "build").fails();
    for expected in [
        "but [capabilities] in plugin.toml does not ask for it: add `",
        "or import only what the plugin uses, each by its name\n",
    ] {
        assert!(built.err.contains(expected), "{}", built.err);
    }
}

/// Only the bundler can find the exports of such a source.
#[test]
fn a_function_that_the_bundle_does_not_export_is_named_with_its_route() {
    if !can_build("javascript") {
        return;
    }
    let author = Author::with_project("javascript");
    author.write("rails/src/own.js", "export const hello = 5;\n");
    author.write("rails/src/plugin.js", "export * from \"./own.js\";\n");
    let built = author.run_in("rails", "build").fails();
    let expected = "\nerror: plugin.toml answers `GET /v3/rails/:name` with a name under which the plugin exports no function\n";
    assert!(built.err.contains(expected), "{}", built.err);
}

#[test]
fn files_that_the_build_of_go_leaves_out_are_not_compared_with_the_manifest() {
    if !can_build("go") {
        return;
    }
    let author = Author::with_project("go");
    let sleeps = "package main\n\nimport (\n\t\"supervisor/gpio\"\n\t\"time\"\n)\n\nfunc own() { time.Sleep(1); gpio.Lines() }\n";
    for (file, head) in [
        ("gen.go", "//go:build ignore\n\n"),
        ("sim_linux.go", ""),
        ("_old.go", ""),
    ] {
        author.write(&format!("rails/src/{file}"), &format!("{head}{sleeps}"));
    }
    author.run_in("rails", "build").succeeds();
    author.write("rails/src/part_wasip1.go", sleeps);
    let built = author.run_in("rails", "build").fails();
    assert!(built.err.contains("src/part_wasip1.go:4"), "{}", built.err);
}

#[test]
fn a_mistake_in_the_sources_is_shown_at_its_line() {
    let above = "error: build failed: the compiler's messages are above\n";
    let in_log = "build failed: the compiler's whole output is in `build/componentize-py.log`\n";
    for (language, source, from, to, place, last) in [
        (
            "c",
            "plugin.c",
            "unsigned long count;",
            "unsigned long count",
            "plugin.c:15",
            above,
        ),
        (
            "go",
            "plugin.go",
            "return supervisor.Textf",
            "return supervisor.Texf",
            "plugin.go:20",
            above,
        ),
        (
            "typescript",
            "plugin.ts",
            "return `",
            "return return `",
            "plugin.ts:7",
            above,
        ),
        (
            "python",
            "plugin.py",
            "    return f",
            "    return return f",
            "error: src/plugin.py:9: SyntaxError: invalid syntax\n    return return f",
            in_log,
        ),
    ] {
        if can_build(language) {
            let author = Author::with_project(language);
            author.edit(&format!("rails/src/{source}"), from, to);
            let built = author.run_in("rails", "build").fails();
            assert!(built.err.contains(place), "{}", built.err);
            assert!(built.err.ends_with(last), "{}", built.err);
        }
    }
}

/// Only the author's own line, and not those of the SDK and of Python that led there. A package of the machine is not
/// found either: elsewhere, the same project would not build.
#[test]
fn an_import_that_python_cannot_find_is_shown_at_its_line_and_the_rest_is_in_a_file() {
    if can_build("python") {
        let author = Author::with_project("python");
        author.edit(
            "rails/src/plugin.py",
            "from supervisor_sdk",
            "import no_such_module\nfrom supervisor_sdk",
        );
        let packages = author.path("environment/lib/python3/site-packages");
        fs::create_dir_all(&packages).unwrap();
        fs::write(packages.join("no_such_module.py"), "").unwrap();
        let environment = author.path("environment").display().to_string();
        let variables = [("VIRTUAL_ENV", environment)];
        let built = author.shell("cd rails\nsupervisor-plugin build", &variables);
        let built = built.fails();
        let expected = "error: src/plugin.py:3: ModuleNotFoundError: No module named 'no_such_module'\n    \
                        import no_such_module\n";
        assert!(built.err.contains(expected), "{}", built.err);
        assert!(!built.err.contains("Stack backtrace"), "{}", built.err);
        assert!(built.err.lines().count() < 10, "{}", built.err);
        let log = author.read("rails/build/componentize-py.log");
        assert!(log.contains("/0/routes.py"), "{log}");
    }
}

#[test]
fn a_handler_that_the_sources_do_not_have_is_named_in_the_same_words_in_each_language() {
    let exported = "`export async function greet(`";
    for (language, source, definition) in [
        ("c", "src/plugin.c", "the function"),
        ("go", "src/plugin.go", "`func greet(`"),
        ("javascript", "src/plugin.js", exported),
        ("python", "src/plugin.py", "`async def greet(`"),
        ("rust", "src/lib.rs", "`async fn greet(`"),
        ("typescript", "src/plugin.ts", exported),
    ] {
        let author = Author::with_project(language);
        author.edit("rails/plugin.toml", "\"hello\"", "\"greet\"");
        let project = author.read("rails/plugin.toml");
        let line = 1 + project
            .lines()
            .position(|line| line.contains("greet"))
            .unwrap();
        let built = author.run_in("rails", "build").fails();
        let expected = format!(
            "error: plugin.toml:{line}: the route GET /v3/rails/:name names the function \"greet\", which {source} does not \
             export: add {definition} to it, or name another; it exports: hello\n"
        );
        assert!(built.err.ends_with(&expected), "{}", built.err);
    }
}

#[test]
fn a_function_for_events_that_the_sources_do_not_have_is_named() {
    for language in ["c", "go", "javascript", "python", "rust", "typescript"] {
        let author = Author::with_project(language);
        let project = author.read("rails/plugin.toml");
        let events = format!("events = [\"start\"]\n{project}\n[provides]\nevents = \"watch\"\n");
        author.write("rails/plugin.toml", &events);
        let built = author.run_in("rails", "build").fails();
        let expected = "`events` in [provides] names the function \"watch\", which src/";
        assert!(built.err.contains(expected), "{}", built.err);
    }
}

#[test]
fn what_updates_the_operating_system_is_named_if_the_sources_do_not_have_it() {
    for (language, kind) in [("c", "constant"), ("go", "type")] {
        let author = Author::with_project(language);
        let project = author.read("rails/plugin.toml");
        for (name, expected) in [
            (
                "slots",
                format!("`os-update` in [provides] names the {kind} \"slots\", which src/"),
            ),
            (
                "two slots",
                format!("`two slots`, which provides `os-update`, is not the name of a {kind} in "),
            ),
        ] {
            let provides = format!("{project}\n[provides]\nos-update = \"{name}\"\n");
            author.write("rails/plugin.toml", &provides);
            let built = author.run_in("rails", "build").fails();
            assert!(built.err.contains(&expected), "{}", built.err);
        }
    }
}

/// In Rust the compiler decides what a component imports, so the finished one is compared.
#[test]
fn a_capability_that_a_component_in_rust_does_not_use_or_ask_for_is_a_warning() {
    let author = Author::new();
    // Another name than in other tests: projects of one name would replace each other's component in the target folder.
    author.new_project("lamps");
    author.edit(
        "lamps/plugin.toml",
        "store = \"counts the calls\"",
        "led = \"shows the calls\"",
    );
    let built = author.run_in("lamps", "build").succeeds();
    for expected in [
        "warning: [capabilities] in plugin.toml asks for `led`, but the component does not use it: leave it out\n",
        "warning: the component imports `platform:supervisor/store`, but [capabilities] in plugin.toml does not ask for `store`, \
         so no device loads it: add `store = \"why\"`\n",
    ] {
        assert!(built.err.contains(expected), "{}", built.err);
    }
    author.edit(
        "lamps/plugin.toml",
        "led = \"shows the calls\"",
        "store = \"counts the calls\"",
    );
    let built = author.run_in("lamps", "build").succeeds();
    assert!(!built.err.contains("warning: "), "{}", built.err);
}
