//! The functions that the main source of a plugin in JavaScript or TypeScript exports.

use std::path::Path;

use super::imports::words;
use crate::languages::source_code::{Syntax, code_of};
use crate::languages::source_functions::{SourceFunctions, first_word, name_after};

/// Returns the functions that a source exports.
pub(super) fn functions(source: &Path) -> SourceFunctions {
    let code = code_of(source, Syntax::JavaScript);
    let mut functions = SourceFunctions::default();
    for at in words(&code, "export") {
        let rest = code[at + "export".len()..].trim_start();
        if let Some(names) = rest.strip_prefix('{') {
            let names = names.split('}').next().unwrap_or_default();
            for name in names.split(',') {
                let name = name.split_once(" as ").map_or(name, |(_, name)| name);
                if let Some(name) = first_word(name.trim()) {
                    functions.add(name);
                }
            }
        } else if let Some(module) = rest.strip_prefix('*') {
            match name_after(module.trim_start(), &[], &["as"]) {
                Some(name) => functions.add(name),
                None => functions.has_others = true,
            }
        } else {
            add_declared(rest, &mut functions);
        }
    }
    functions
}

/// Adds the functions of a declaration.
fn add_declared(declaration: &str, functions: &mut SourceFunctions) {
    let line = declaration.lines().next().unwrap_or_default();
    // The `*` of a generator may be on either side of the space.
    let line = line.replacen("function*", "function ", 1);
    let line = line.replacen("function *", "function ", 1);
    if let Some(name) = name_after(&line, &["async"], &["function"]) {
        functions.add(name);
        return;
    }
    let Some(rest) = ["const ", "let ", "var "]
        .iter()
        .find_map(|keyword| line.strip_prefix(keyword))
    else {
        return;
    };
    match first_word(rest.trim_start()) {
        Some(name) => functions.add(name),
        // The names are those of parts of a value.
        None => functions.has_others = true,
    }
    // Other variables of the same declaration.
    let others = rest.split(',').skip(1);
    let others = others.filter_map(|other| first_word(other.trim_start()));
    functions.names.extend(others.map(str::to_owned));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_of_a_source_are_listed() {
        for (text, expected) in [
            ("export function a() {}\nfunction b() {}", &["a"][..]),
            ("export async function a({ params }) {}", &["a"]),
            (
                "export function* a() {}\nexport async function *b() {}",
                &["a", "b"],
            ),
            ("export const a = () => 1;\nexport let b = a;", &["a", "b"]),
            ("export { a, b as c };", &["a", "c"]),
            ("export {\n  a,\n} from \"./own.js\";", &["a"]),
            ("export * as a from \"./own.js\";", &["a"]),
            ("// export function a() {}\nexport default 1;", &[]),
            ("export type A = string;\nexport interface B {}", &[]),
            (
                "export const a = (b) => b.replace(/\\/*$/, \"\");\nexport function c() {}",
                &["a", "c"],
            ),
            ("exported(a);", &[]),
            ("export", &[]),
            ("export {", &[]),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let found = functions(file.path());
            assert_eq!(
                (&found.listed[..], found.has_others),
                (
                    &expected
                        .iter()
                        .map(|name| (*name).to_owned())
                        .collect::<Vec<_>>()[..],
                    false
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn exports_that_only_the_bundler_can_find_are_not_refused() {
        for text in [
            "export * from \"./own.js\";",
            "export const { a, b } = handlers;",
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            assert!(functions(file.path()).has_others, "{text}");
        }
    }
}
