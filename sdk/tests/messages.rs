//! The compiler's messages about a plugin with wrong handlers, and their places.
//!
//! Each case is a crate that is compiled against the SDK that cargo has built for this test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::Command;

/// Returns the newest build of the SDK, which is at least as new as its sources: cargo has just
/// built it.
fn sdk() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let files = std::fs::read_dir(this.parent().unwrap()).unwrap();
    let libraries = files.filter_map(|file| {
        let path = file.unwrap().path();
        let name = path.file_name()?.to_str()?;
        let is_library = name.starts_with("libsupervisor_sdk-") && name.ends_with(".rlib");
        is_library.then(|| (path.metadata().unwrap().modified().unwrap(), path))
    });
    libraries.max().unwrap().1
}

/// Returns the errors of a crate, each as `line:column: message`. `args` are further arguments of
/// the compiler.
fn compile(source: &str, args: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lib.rs");
    std::fs::write(&file, source).unwrap();
    let sdk = sdk();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--error-format=short",
            "--cap-lints=warn",
        ])
        .args(args)
        .arg("--out-dir")
        .arg(folder.path())
        .arg("--extern")
        .arg(format!("supervisor_sdk={}", sdk.display()))
        .arg("-L")
        .arg(format!("dependency={}", sdk.parent().unwrap().display()))
        .arg(&file)
        .env("CARGO_PKG_NAME", "acme-rails")
        .env("CARGO_PKG_VERSION", "0.1.0")
        .env("CARGO_MANIFEST_DIR", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let place = format!("{}:", file.display());
    let lines = text.lines().filter_map(|line| line.strip_prefix(&place));
    lines.map(str::to_owned).collect()
}

/// Checks a plugin with one route, whose handler begins at line 4.
#[track_caller]
fn check(route: &str, handler: &str, expected: &[&str]) {
    let source = format!(
        "use supervisor_sdk::*;\n\nplugin! {{ routes: {{ GET \"{route}\" => answer }} }}\n{handler}\n"
    );
    let errors = compile(&source, &["--emit=metadata"]);
    assert_eq!(errors, expected, "{handler}");
}

#[test]
fn a_handler_that_is_right_compiles() {
    for (route, handler) in [
        ("/v3/a", "async fn answer() {}"),
        ("/v3/x/:a", "async fn answer() {}"),
        (
            "/v3/x/:a",
            "async fn answer(_: Path<String>) -> &'static str { \"\" }",
        ),
        (
            "/v3/x/:a",
            "async fn answer(_: Headers, _: Path<(u8,)>) -> Error { Error::internal(1) }",
        ),
        (
            "/v3/x/:a/:b",
            "async fn answer(_: Result<Path<(u8, String)>, Error>) -> Result<(), Error> { Ok(()) }",
        ),
        (
            "/v3/x/:a/:b",
            "async fn answer(_: Path<Vec<String>>, _: Request) -> String { String::new() }",
        ),
    ] {
        check(route, handler, &[]);
    }
}

#[test]
fn a_path_takes_as_many_values_as_its_route_has_names() {
    let message = |route: &str, names: &str, remedy: &str| {
        format!(
            "3:43: error[E0080]: evaluation panicked: `GET {route}` has {names}, and the `Path` of `answer` takes another \
             number of values: {remedy}: evaluation of `_::_` failed here"
        )
    };
    for (route, argument, names, remedy) in [
        (
            "/v3/rails/:a",
            "Path<(u8, u8)>",
            "one `:name`",
            "take `Path<String>`, for example",
        ),
        (
            "/v3/rails/bb",
            "Path<String>",
            "no `:name`",
            "leave out its argument `Path`",
        ),
        (
            "/v3/rails/bb",
            "Result<Path<u8>, Error>",
            "no `:name`",
            "leave out its argument `Path`",
        ),
        (
            "/v3/r/:a/:bb",
            "Path<String>",
            "2 `:names`",
            "take `Path<(String, String)>`, for example",
        ),
    ] {
        let handler = format!("async fn answer(_: {argument}) {{}}");
        check(route, &handler, &[&message(route, names, remedy)]);
    }
}

#[test]
fn each_mistake_of_a_handler_has_its_own_message() {
    for (handler, expected) in [
        (
            "fn answer() -> String { String::new() }",
            "a handler must be an `async fn`: this function is not `async`",
        ),
        (
            "async fn answer(_: u32) {}",
            "`u32` cannot be an argument of a handler: this handler takes `u32`",
        ),
        (
            "async fn answer(_: Headers, _: Option<Body>) {}",
            "`Option<supervisor_sdk::Body>` cannot be an argument of a handler: this handler takes \
             `Option<supervisor_sdk::Body>`",
        ),
        (
            "async fn answer() -> u32 { 1 }",
            "`u32` cannot be the answer of a handler: this handler returns `u32`",
        ),
        (
            "async fn answer() -> Result<(), std::fmt::Error> { Ok(()) }",
            "`std::fmt::Error` cannot be the answer of a handler: this handler returns `std::fmt::Error`",
        ),
    ] {
        check(
            "/v3/rails",
            handler,
            &[&format!("3:40: error[E0277]: {expected}")],
        );
    }
}

#[test]
fn missing_and_invalid_handlers_are_reported_without_further_errors() {
    check(
        "/v3/rails",
        "#[allow(non_camel_case_types)]\nstruct answer;",
        // Once for the call and once for the check of its arguments; the notes differ.
        &["3:40: error[E0277]: `answer` is not a handler: not a function of up to six arguments";
            2],
    );
    check(
        "/v3/rails",
        "async fn other() {}",
        &["3:40: error[E0425]: cannot find value `answer` in this scope: not found in this scope"],
    );
}

/// Compiles a plugin with an action of its own, whose function begins at line 4.
fn action_errors(function: &str) -> Vec<String> {
    let source = format!(
        "use supervisor_sdk::*;\n\nplugin! {{ actions: {{ set => answer }} }}\n{function}\n"
    );
    compile(&source, &["--emit=metadata"])
}

#[test]
fn the_function_of_an_action_takes_its_input_and_the_caller() {
    for arguments in [
        "",
        "_: Vec<u8>",
        "_: String",
        "_: Json<bool>",
        "_: Caller",
        "_: Caller, _: Json<bool>",
        "_: String, _: Caller",
    ] {
        let errors = action_errors(&format!("async fn answer({arguments}) {{}}"));
        assert!(errors.is_empty(), "{arguments}: {errors:?}");
    }
}

#[test]
fn each_mistake_of_an_action_has_its_own_message() {
    for (function, expected) in [
        (
            "async fn answer(_: u32) {}",
            "`u32` cannot be the input of an action: this function takes `u32`",
        ),
        (
            "async fn answer(_: String, _: String) {}",
            "cannot be the arguments of an action: this function takes `(",
        ),
        (
            "fn answer(_: String) {}",
            "a handler must be an `async fn`: this function is not `async`",
        ),
        (
            "async fn answer(_: String) -> u32 { 1 }",
            "`u32` cannot be the output of an action: this function returns `u32`",
        ),
    ] {
        let errors = action_errors(function);
        assert!(!errors.is_empty(), "{function}");
        for error in &errors {
            assert!(
                error.starts_with("3:29: error[E0277]: "),
                "{function}: {errors:?}"
            );
            assert!(error.contains(expected), "{function}: {errors:?}");
        }
    }
}

#[test]
fn two_plugins_in_a_crate_are_refused_in_words() {
    let plugin = "supervisor_sdk::plugin! { identify => crate::blink }\n";
    let function = "async fn blink() {}\n";
    let errors = compile(&[function, plugin, plugin].concat(), &["--emit=metadata"]);
    assert_eq!(
        errors[0],
        "3:1: error[E0428]: the name `A_crate_can_call_plugin_only_once` is defined multiple times: \
         `A_crate_can_call_plugin_only_once` redefined here"
    );
    let modules = format!("{function}mod a {{ {plugin} }}\nmod b {{ {plugin} }}");
    assert_eq!(
        compile(&modules, &[]),
        ["4:9: error: symbol `A_crate_can_call_plugin_only_once` is already defined"]
    );
}

#[test]
fn a_provider_that_is_none_says_what_to_implement() {
    let source = "struct My;\nsupervisor_sdk::plugin! { proxy-redirector => My }";
    assert_eq!(
        compile(source, &["--emit=metadata"]),
        [
            "2:47: error[E0277]: `My` does not provide the action `proxy-redirector`: unsatisfied trait bound"
        ]
    );
}

#[test]
fn a_mistake_in_the_declaration_is_the_only_message() {
    let source = "use supervisor_sdk::plugin;\nplugin! {\n  routes: { GET \"v3\" => list }\n}\nasync fn list() {}\n";
    assert_eq!(
        compile(source, &["--emit=metadata"]),
        ["3:17: error: invalid route `v3`: it must begin with `/`"]
    );
}
