//! The random numbers of JavaScript, which belong to the language and not to a module of the SDK. Without the capability
//! `random`, `crypto` never works and `Math.random` only while the plugin is imported; the SDK's errors in calls say so, and
//! the build says it earlier.

use std::path::PathBuf;

use plugin_manifest::Capability;

use super::calls::line_in_function;
use super::imports::words;
use crate::languages::capability_use::CapabilityUse;
use crate::languages::source_code::{Syntax, bare_code_of};
use crate::project::ProjectFolder;

/// The functions of `crypto`.
const OF_CRYPTO: [&str; 2] = [".getRandomValues", ".randomUUID"];

/// Returns the first call of `crypto` in each of these files.
pub(super) fn of_crypto(files: &[PathBuf]) -> Vec<CapabilityUse> {
    let mut uses = Vec::new();
    for file in files {
        let code = bare_code_of(file, Syntax::JavaScript);
        uses.extend(crypto_line(&code).map(|line| CapabilityUse {
            capability: Capability::Random,
            file: file.clone(),
            line,
        }));
    }
    uses
}

/// Returns a warning for each file of a plugin without random numbers that calls `Math.random` in a function. It is not an
/// error: the function may be one that runs only while the plugin is imported.
pub(super) fn warnings(project: &ProjectFolder, files: &[PathBuf]) -> Vec<String> {
    let found = files.iter().filter_map(|file| {
        let line = line_in_function(&bare_code_of(file, Syntax::JavaScript), place_of_math_random)?;
        let file = file.strip_prefix(&project.path).unwrap_or(file);
        Some(format!(
            "`Math.random` is used in {}:{line}, but [capabilities] in plugin.toml does not ask for `random`, without which it \
             is an error in a call: add `random = \"why\"`",
            file.display()
        ))
    });
    found.collect()
}

/// Returns the first line that calls a function of the global `crypto`, counted from 1. In a file that has such a name of its
/// own, or looks whether there is a `crypto`, there is none.
fn crypto_line(code: &str) -> Option<usize> {
    let after = |at: usize| &code[at + "crypto".len()..];
    let mut places = words(code, "crypto");
    if places.any(|at| !after(at).starts_with('.')) {
        return None;
    }
    let mut places = words(code, "crypto");
    let call = places.find(|at| {
        let is_global = !code[..*at].ends_with('.') || code[..*at].ends_with("globalThis.");
        let mut functions = OF_CRYPTO.iter();
        is_global && functions.any(|function| after(*at).starts_with(function))
    })?;
    Some(line_of(code, call))
}

/// Returns the first position of a call of `Math.random` in a line.
fn place_of_math_random(line: &str) -> Option<usize> {
    words(line, "Math").find(|at| {
        let call = line[*at..].strip_prefix("Math.random");
        call.is_some_and(|rest| !rest.starts_with(|char: char| char.is_alphanumeric()))
    })
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_global_crypto_are_found() {
        for (code, expected) in [
            ("const a = crypto.randomUUID();", Some(1)),
            (
                "\nf(crypto.getRandomValues(a));\ncrypto.randomUUID();",
                Some(2),
            ),
            ("globalThis.crypto.randomUUID()", Some(1)),
            ("own.crypto.randomUUID()", None),
            ("crypto.subtle.digest(a)", None),
            ("import crypto from \"\";\ncrypto.randomUUID();", None),
            ("import { crypto } from \"\";\ncrypto.randomUUID();", None),
            ("const crypto = own();\ncrypto.randomUUID();", None),
            ("if (typeof crypto === \"\") crypto.randomUUID();", None),
            ("mycrypto.randomUUID()", None),
            ("crypto", None),
            ("", None),
        ] {
            assert_eq!(crypto_line(code), expected, "{code}");
        }
    }

    #[test]
    fn only_calls_of_math_random_in_a_function_are_found() {
        for (code, expected) in [
            ("const a = Math.random();", None),
            ("function f() {\n  return Math.random();\n}", Some(2)),
            (
                "const a = Math.random();\nconst f = () => Math.random();",
                Some(2),
            ),
            ("function f() {}\nconst a = Math.random();", None),
            (
                "function f() { return Math.round(1) + Math.randomize(); }",
                None,
            ),
            ("function f() { return MyMath.random(); }", None),
            ("}\nconst a = Math.random();", None),
            (
                "const a = Math.random(); function f() {\n}\nMath.random();",
                None,
            ),
            ("", None),
        ] {
            let found = line_in_function(code, place_of_math_random);
            assert_eq!(found, expected, "{code}");
        }
    }
}
