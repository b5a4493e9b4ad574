//! The random numbers of JavaScript, which belong to the language and not to a module of the SDK. Without the capability
//! `random`, `crypto` never works and `Math.random` only while the plugin is imported; the SDK's errors in calls say so, and
//! the build says it earlier.

use std::collections::BTreeSet;

use plugin_manifest::Capability;

use super::globals::{first_in_function, members};
use crate::languages::capability_use::CapabilityUse;
use crate::languages::syntax_tree::{Capture, SyntaxTree};
use crate::project::ProjectFolder;

/// The functions of `crypto`.
const OF_CRYPTO: [&str; 2] = ["getRandomValues", "randomUUID"];
/// The name `crypto`, apart from that of a member.
const CRYPTO: &str = r#"
    ([
        (identifier)
        (shorthand_property_identifier)
        (shorthand_property_identifier_pattern)
    ] @found (#eq? @found "crypto"))"#;

/// Returns the first call of `crypto` in each of these sources.
pub(super) fn of_crypto(sources: &[SyntaxTree]) -> Vec<CapabilityUse> {
    let uses = sources.iter().filter_map(|source| {
        Some(CapabilityUse {
            capability: Capability::Random,
            file: source.file.clone(),
            line: crypto_line(source)?,
        })
    });
    uses.collect()
}

/// Returns a warning for each source of a plugin without random numbers that uses `Math.random` in a function. It is not an
/// error: the function may be one that runs only while the plugin is imported.
pub(super) fn warnings(project: &ProjectFolder, sources: &[SyntaxTree]) -> Vec<String> {
    let found = sources.iter().filter_map(|source| {
        let line = math_random_line(source)?;
        let file = source.file.strip_prefix(&project.path);
        Some(format!(
            "`Math.random` is used in {}:{line}, but [capabilities] in plugin.toml does not ask for `random`, without which it \
             is an error in a call: add `random = \"why\"`",
            file.unwrap_or(&source.file).display()
        ))
    });
    found.collect()
}

/// Returns the first line that uses a function of the global `crypto`. In a source that has such a name of its own, or looks
/// whether there is a `crypto`, there is none.
fn crypto_line(source: &SyntaxTree) -> Option<usize> {
    let all: Vec<_> = members(source).collect();
    let start = |place: &Capture| place.node.start_byte();
    let of_crypto = all.iter().filter(|member| member.object == "crypto");
    let used = of_crypto.clone().filter(|member| !member.is_optional);
    let used: BTreeSet<usize> = used.map(|member| start(&member.place)).collect();
    let of_global = all
        .iter()
        .filter(|member| member.object == "globalThis" && member.property == "crypto");
    let of_global = of_global.map(|member| member.place);
    if !source
        .find(CRYPTO)
        .chain(of_global)
        .all(|name| used.contains(&start(&name)))
    {
        return None;
    }
    let mut calls = of_crypto.filter(|member| OF_CRYPTO.contains(&member.property));
    Some(calls.next()?.place.line)
}

/// Returns the first line that uses `Math.random` in a function.
fn math_random_line(source: &SyntaxTree) -> Option<usize> {
    let random =
        members(source).filter(|member| member.object == "Math" && member.property == "random");
    Some(first_in_function(source, random.map(|member| member.place))?.line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::javascript::globals::parsed;

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
            (
                "export function f({ crypto }) { crypto.randomUUID(); }",
                None,
            ),
            ("const { crypto } = own; crypto.randomUUID();", None),
            ("f({ crypto }); crypto.randomUUID();", None),
            ("crypto?.randomUUID()", None),
            ("globalThis.crypto?.randomUUID?.() ?? own()", None),
            (
                "globalThis.crypto ? globalThis.crypto.randomUUID() : own()",
                None,
            ),
            ("crypto", None),
            ("", None),
        ] {
            assert_eq!(crypto_line(&parsed(code)), expected, "{code}");
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
            let found = math_random_line(&parsed(code));
            assert_eq!(found, expected, "{code}");
        }
    }
}
