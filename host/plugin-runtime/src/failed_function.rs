//! Names the function in which a guest trapped, for the guest's author. The guest chose the name.

use plugin_protocol::text::one_line;
use wasmtime::{FrameInfo, WasmBacktrace};

/// The most of a name that is shown, in bytes.
const NAME: usize = 100;
/// The longest name that is decoded, in bytes. A compiler's form of a name may stand for a much longer one.
const MANGLED_NAME: usize = 1 << 10;

/// Functions of the C library by which a program ends itself, or to which it passes a wrong address.
const C_LIBRARY: [&str; 19] = [
    "abort",
    "abort_call_at",
    "calloc",
    "end_failed_call",
    "exit",
    "exit_exit",
    "free",
    "malloc",
    "memchr",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "realloc",
    "strcmp",
    "strcpy",
    "strlen",
    "strncmp",
    "strtol",
];
/// The beginnings of the names of functions that belong to a language. In C, names that begin with an underscore are
/// reserved for it.
const LANGUAGES: [&str; 14] = [
    "_",
    "alloc::",
    "core::",
    "std::",
    "<alloc::",
    "<core::",
    "<std::",
    "dlmalloc::",
    "runtime.",
    // The SDK for Rust, into which the compiler may have put the author's function, and exports of a component.
    "supervisor_sdk::",
    "<supervisor_sdk::",
    "wit_bindgen::",
    "<wit_bindgen::",
    "[",
];
/// The beginning of the names of functions that execute code of Python: the functions that such a component contains are
/// not its author's.
const INTERPRETER: &str = "_PyEval_";

/// Returns the innermost function of the guest's author that has a name, in one short line.
pub(crate) fn find(error: &wasmtime::Error) -> Option<String> {
    let backtrace = error.downcast_ref::<WasmBacktrace>()?;
    let names = backtrace.frames().iter().filter_map(FrameInfo::func_name);
    of_author(names)
}

fn of_author<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    if names.clone().any(|name| name.starts_with(INTERPRETER)) {
        return None;
    }
    let mut functions = names.map(decoded);
    let function = functions.find(|name| {
        !C_LIBRARY.contains(&name.as_str())
            && !LANGUAGES.iter().any(|begin| name.starts_with(begin))
    })?;
    Some(one_line(&function, NAME))
}

/// Returns the name of a function in Rust as its author writes it, and any other name unchanged.
fn decoded(name: &str) -> String {
    match name.len() {
        0..=MANGLED_NAME => format!("{:#}", rustc_demangle::demangle(name)),
        _ => one_line(name, MANGLED_NAME),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_function_of_the_author_is_named() {
        for (names, expected) in [
            (&["read_rail", "hello"][..], Some("read_rail")),
            (&["__assert_fail", "abort", "read_rail"], Some("read_rail")),
            // As `process::exit` of Rust calls it.
            (
                &[
                    "exit_exit",
                    "_Exit",
                    "exit",
                    "std::process::exit",
                    "rails::rail",
                ],
                Some("rails::rail"),
            ),
            (
                &[
                    "_ZN4core9panicking9panic_fmt17h0123456789abcdefE",
                    "_ZN5rails4rail17h0123456789abcdefE",
                ],
                Some("rails::rail"),
            ),
            (&["_RNvCsaBcD_5rails4rail"], Some("rails::rail")),
            (&["runtime.throw", "main.rail"], Some("main.rail")),
            (&["cfunction_call", "_PyEval_EvalFrameDefault"], None),
            (&["abort", "_initialize"], None),
            (
                &[
                    "exit_exit",
                    "supervisor_sdk::bindings::endpoint::exports::_export_handle_cabi::{{closure}}",
                    "wit_bindgen::rt::async_support::callback",
                    "[async-lift]platform:supervisor/handler@1.4.0#handle",
                ],
                None,
            ),
            (&[], None),
        ] {
            let found = of_author(names.iter().copied());
            assert_eq!(found.as_deref(), expected, "{names:?}");
        }
    }

    /// Attack: a name is a line of the log of its own, or fills the log, or takes long to decode.
    #[test]
    fn a_hostile_name_is_one_short_line() {
        let repeated = format!("_RNvC{}a1f", "INvC1a1f".repeat(100_000));
        for name in [
            "f\nINFO access: POST /v1/reboot status=202 \u{1b}[2J\u{202e}".repeat(1000),
            "x".repeat(1 << 24),
            repeated,
        ] {
            let found = of_author([name.as_str()].into_iter());
            let Some(shown) = found else { continue };
            assert!(shown.len() <= NAME + 3, "{}", shown.len());
            assert!(!shown.contains(char::is_control), "{shown}");
        }
    }
}
