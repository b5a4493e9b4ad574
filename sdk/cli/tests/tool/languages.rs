//! Plugins in other languages: the template of each, and the example in `examples/`, built with the language's own tools
//! and run in the device's runtime.

use std::process::Command;

use crate::author::Author;

/// Whether a program of the language is on this machine; its tests are skipped where it is not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: there is no `{program}`");
    }
    found
}

#[test]
fn a_new_plugin_in_python_passes_its_own_test() {
    if has("python3") {
        let author = Author::new();
        author.run("new rails --lang python").succeeds();
        let passed = author.run_in("rails", "test").succeeds();
        assert!(passed.out.contains("3 passed, 0 failed"), "{}", passed.out);
    }
}

#[test]
fn the_example_in_python_counts_waits_and_streams() {
    if has("python3") {
        let author = Author::new();
        author.copy_example("hello-python");
        let passed = author.run_in("hello-python", "test").succeeds();
        assert!(passed.out.contains("9 passed, 0 failed"), "{}", passed.out);
    }
}

#[test]
fn a_handler_that_is_no_function_of_the_language_is_refused_before_the_build() {
    if has("python3") {
        let author = Author::new();
        author.run("new rails --lang python").succeeds();
        author.edit("rails/plugin.toml", "\"hello\"", "\"say hello\"");
        let built = author.run_in("rails", "build").fails();
        let expected = "is not the name of a function in Python";
        assert!(built.err.contains(expected), "{}", built.err);
    }
}
