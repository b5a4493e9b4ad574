//! Mistakes in Go, C and JavaScript of which the tools of these languages do not say what to do: the type of a handler, and
//! clocks and random numbers that the plugin does not ask for.

use crate::author::Author;
use crate::languages::can_build;

/// Returns the number of the line of a file that begins with a text.
fn line_of(author: &Author, file: &str, text: &str) -> usize {
    let source = author.read(file);
    let mut lines = source.lines();
    1 + lines.position(|line| line.starts_with(text)).unwrap()
}

/// Returns a project with more code in its source, whose route, providers and action name functions there.
fn project(language: &str, source: &str, code: &str, functions: [&str; 4]) -> Author {
    let [route, events, identify, action] = functions;
    let author = Author::with_project(language);
    author.append(&format!("rails/{source}"), code);
    author.edit("rails/plugin.toml", "\"hello\"", &format!("\"{route}\""));
    let rest = author.read("rails/plugin.toml");
    author.write(
        "rails/plugin.toml",
        &format!(
            "events = [\"start\"]\n{rest}\n[provides]\nevents = \"{events}\"\nidentify = \"{identify}\"\n\n[actions]\nset = \"{action}\"\n"
        ),
    );
    author
}

#[test]
fn a_function_of_the_wrong_type_in_go_is_shown_at_its_line_with_the_right_type() {
    if !can_build("go") {
        return;
    }
    let code = "\nfunc rail(r *supervisor.Request) string {\n\treturn r.Param(\"name\")\n}\n\nfunc watch() {}\n\nfunc blink() {}\n\n\
                func set(on bool) bool {\n\treturn on\n}\n";
    let author = project(
        "go",
        "src/plugin.go",
        code,
        ["rail", "watch", "blink", "set"],
    );
    let built = author.run_in("rails", "build").fails();
    for (begin, message) in [
        (
            "func rail(",
            "cannot convert rail (value of type func(r *supervisor.Request) string) to type \
             func(*supervisor.Request) (*supervisor.Response, error)\n",
        ),
        (
            "func watch(",
            "cannot convert watch (value of type func()) to type func(events.Event) (events.Answer, error)\n",
        ),
        (
            "func blink(",
            "cannot convert blink (value of type func()) to type func() error\n",
        ),
        (
            "func set(",
            "type func(on bool) bool of set does not match inferred type func(bool) (Output, error) for func(Input) (Output, \
             error)\n",
        ),
    ] {
        let line = line_of(&author, "rails/src/plugin.go", begin);
        let place = format!("src/plugin.go:{line}: ");
        let mut lines = built.err.split_inclusive('\n');
        let found = lines.any(|line| line.starts_with(&place) && line.ends_with(message));
        assert!(found, "{place}{message}: {}", built.err);
    }
    assert!(!built.err.contains("routes.go"), "{}", built.err);
}

/// The linker would put a trap in place of such a function.
#[test]
fn a_function_of_the_wrong_type_in_c_is_named_with_its_line_and_the_right_type() {
    if !can_build("c") {
        return;
    }
    let right = "\nvoid rail(request_t *r) {\n    answer_textf(r, \"on\");\n}\n\n#include \"events.h\"\n\n\
                 event_answer_t watch(const event_t *event) {\n    (void)event;\n    return go_on();\n}\n\n\
                 #include \"identify.h\"\n\nidentify_result_t blink(void) {\n    return identify_done();\n}\n\n\
                 #include \"action_provider.h\"\n\noutput_t set(input_t input) {\n    return output_bytes(input.bytes, \
                 input.length);\n}\n";
    for (from, to, begin, expected) in [
        (
            "void rail(request_t *r) {\n    answer_textf(r, \"on\");\n",
            "int rail(request_t *r) {\n    (void)r;\n    return 1;\n",
            "int rail(",
            "the function `rail`, which answers `GET /v3/rails/:name`, must be `void rail(request_t *request)`",
        ),
        (
            "watch(const event_t *event) {\n    (void)event;\n",
            "watch(void) {\n",
            "event_answer_t watch(",
            "the function `watch`, which provides `events`, must be `event_answer_t watch(const event_t *event)`",
        ),
        (
            "blink(void) {\n",
            "blink(int count) {\n    (void)count;\n",
            "identify_result_t blink(",
            "the function `blink`, which provides `identify`, must be `identify_result_t blink(void)`",
        ),
        (
            "set(input_t input) {",
            "set(input_t input, int more) {\n    (void)more;",
            "output_t set(",
            "the function `set`, which performs the action `set`, must be `output_t set(input_t input)`",
        ),
        (
            "void rail(request_t *r)",
            "static void rail(request_t *r)",
            "static void rail(",
            "the function `rail`, which answers `GET /v3/rails/:name`, is `static`, so nothing outside its file can call it: \
             write `void rail(request_t *request)`",
        ),
    ] {
        let author = project(
            "c",
            "src/plugin.c",
            right,
            ["rail", "watch", "blink", "set"],
        );
        author.edit("rails/src/plugin.c", from, to);
        let built = author.run_in("rails", "build").fails();
        let line = line_of(&author, "rails/src/plugin.c", begin);
        let expected = format!("error: src/plugin.c:{line}: {expected}\n");
        assert!(built.err.ends_with(&expected), "{expected}{}", built.err);
    }
    // An author may write the same type in other words.
    let author = project(
        "c",
        "src/plugin.c",
        right,
        ["rail", "watch", "blink", "set"],
    );
    author.edit(
        "rails/src/plugin.c",
        "void rail(request_t *r)",
        "void rail(struct request *const r)",
    );
    author.run_in("rails", "build").succeeds();
}

const WAITING_IN_GO: &str = r#"package main

import (
	"time"

	"supervisor"
	"supervisor/timer"
)

func hello(r *supervisor.Request) (*supervisor.Response, error) {
	switch r.Param("name") {
	case "channel":
		<-time.After(time.Millisecond)
	case "goroutine":
		done := make(chan bool)
		time.AfterFunc(time.Millisecond, func() { close(done) })
		<-done
	case "unused":
		time.AfterFunc(time.Hour, func() {}).Stop()
	case "timer":
		timer.Sleep(time.Millisecond)
	}
	return supervisor.Text("it has waited"), nil
}
"#;

#[test]
fn a_plugin_in_go_that_waits_for_a_clock_without_asking_for_it_learns_what_to_do() {
    if !can_build("go") {
        return;
    }
    let author = Author::with_project("go");
    let source = "rails/src/plugin.go";
    author.edit("rails/plugin.toml", "store = \"counts the calls\"\n", "");
    author.write(source, WAITING_IN_GO);
    let request = |name: &str, answer: &str| {
        format!("[[request]]\nget = \"/v3/rails/{name}\"\nanswer = {{ {answer} }}\n")
    };
    let refused = "status = 500, contains = [\"the plugin waits for a clock of Go\", \"use `timer.Sleep` of the package \
                   `supervisor/timer`\", \"[capabilities] of plugin.toml\"]";
    let waited = "status = 200, body = \"it has waited\"";
    let steps = |refused: &str| {
        [
            request("channel", refused),
            request("goroutine", refused),
            request("unused", waited),
            request("timer", waited),
        ]
        .concat()
    };
    let passes = |steps: &str| {
        author.write("rails/test/hello.toml", steps);
        let passed = author.run_in("rails", "test").succeeds();
        assert!(passed.out.contains("4 passed, 0 failed"), "{}", passed.out);
    };
    passes(&steps(refused));

    // What certainly fails is refused by the build.
    author.edit(source, "<-time.After(time.Millisecond)", "time.Sleep(1)");
    let built = author.run_in("rails", "build").fails();
    let expected = "error: `time.Sleep` is used in src/plugin.go:13, but without the capability `clock` it never returns: use \
                    `timer.Sleep` of the package `supervisor/timer`, which needs none, or add `clock = \"why\"` to \
                    [capabilities] of plugin.toml\n";
    assert!(built.err.ends_with(expected), "{}", built.err);

    let grants = "[capabilities]\nclock = \"waits\"\n";
    author.edit("rails/plugin.toml", "[capabilities]\n", grants);
    passes(&steps(waited));
}

const RANDOM_IN_JAVASCRIPT: &str = r#"const atImport = Math.random();
const bytes = (random) => String(random.getRandomValues(new Uint8Array(4)));

export async function hello({ params }) {
  if (params.name === "number") return String(Math.random());
  if (params.name === "bytes") return bytes(globalThis["crypto"]);
  return String(atImport < 1);
}
"#;

#[test]
fn a_plugin_in_javascript_that_uses_random_numbers_without_asking_for_them_learns_what_to_do() {
    if !can_build("javascript") {
        return;
    }
    let author = Author::with_project("javascript");
    author.write("rails/src/plugin.js", RANDOM_IN_JAVASCRIPT);
    let refused = "status = 500, contains = [\"the plugin uses random numbers without asking for them\", \"[capabilities] of \
                   plugin.toml\"]";
    let request = |name: &str, answer: &str| {
        format!("[[request]]\nget = \"/v3/rails/{name}\"\nanswer = {{ {answer} }}\n")
    };
    let steps = |refused: &str| {
        let import = request("import", "status = 200, body = \"true\"");
        [
            request("number", refused),
            request("bytes", refused),
            import,
        ]
        .concat()
    };
    author.write("rails/test/hello.toml", &steps(refused));
    let passed = author.run_in("rails", "test").succeeds();
    assert!(passed.out.contains("3 passed, 0 failed"), "{}", passed.out);
    let warning = "warning: `Math.random` is used in src/plugin.js:5, but [capabilities] in plugin.toml does not ask for \
                   `random`, without which it is an error in a call: add `random = \"why\"`\n";
    assert!(passed.err.contains(warning), "{}", passed.err);

    // What certainly fails is refused by the build.
    let function = "export const own = () => crypto.randomUUID();\n";
    author.append("rails/src/plugin.js", function);
    let built = author.run_in("rails", "build").fails();
    let expected = "error: `random` is used in src/plugin.js:9, but [capabilities] in plugin.toml does not ask for it: add \
                    `random = \"why\"`\n";
    assert!(built.err.ends_with(expected), "{}", built.err);

    let grants = "[capabilities]\nrandom = \"keys\"\n";
    author.edit("rails/plugin.toml", "[capabilities]\n", grants);
    author.write("rails/test/hello.toml", &steps("status = 200"));
    let passed = author.run_in("rails", "test").succeeds();
    assert!(passed.out.contains("3 passed, 0 failed"), "{}", passed.out);
    assert!(!passed.err.contains("warning"), "{}", passed.err);
}
