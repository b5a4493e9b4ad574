//! The functions that the main source of a plugin in JavaScript or TypeScript exports.

use crate::languages::source_functions::SourceFunctions;
use crate::languages::syntax_tree::{SyntaxTree, has_keyword};

/// Functions and variables; a variable may hold a function.
const DECLARATIONS: &str = "
    (export_statement declaration: [
        (function_declaration name: (identifier) @name)
        (generator_function_declaration name: (identifier) @name)
        (lexical_declaration (variable_declarator name: (identifier) @name))
        (variable_declaration (variable_declarator name: (identifier) @name))
    ]) @statement";
/// Names of a list, and the name of a module.
const NAMES: &str = "
    (export_statement
        (export_clause (export_specifier name: (_) @name alias: (_)? @alias) @specifier)) @statement
    (export_statement (namespace_export (_) @name)) @statement";
/// What exports names that only the bundler can find: parts of a value, and all names of another module.
const OTHERS: &str = r#"
    (export_statement declaration: (_ (variable_declarator name: [(object_pattern) (array_pattern)] @found)))
    (export_statement "*" @found)"#;

/// Returns the functions that a source exports.
pub(super) fn functions(source: &SyntaxTree) -> SourceFunctions {
    let mut functions = SourceFunctions::default();
    for [statement, name] in source.matches(DECLARATIONS, ["statement", "name"]) {
        // That of `export default` has another name, if any.
        if let Some(name) = name.filter(|_| !has_keyword(statement, "default")) {
            functions.add(name.text);
        }
    }
    let names = ["statement", "specifier", "name", "alias"];
    for [statement, specifier, name, alias] in source.matches(NAMES, names) {
        let is_type = has_keyword(statement, "type") || has_keyword(specifier, "type");
        if let Some(name) = alias.or(name).filter(|_| !is_type) {
            functions.add(name.text.trim_matches(['"', '\'']));
        }
    }
    functions.has_others = source.find(OTHERS).next().is_some() || source.has_errors();
    functions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::syntax_tree::Grammar;

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
            ("export default function a() {}", &[]),
            ("export /* a */ default function a() {}", &[]),
            ("export type { A };\nexport { type B, c };", &["c"]),
            ("export { a as \"b\" };", &["b"]),
            (
                "const a = \"export function b() {}\", c = `export function d() {}`;",
                &[],
            ),
            ("export type A = string;\nexport interface B {}", &[]),
            (
                "export const a = (b) => b.replace(/\\/*$/, \"\");\nexport function c() {}",
                &["a", "c"],
            ),
            ("exported(a);", &[]),
            ("export", &[]),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let found = functions(&SyntaxTree::read(file.path(), Grammar::TypeScript));
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
    fn what_only_the_bundler_can_find_is_not_refused() {
        for text in [
            "export * from \"./own.js\";",
            "export const { a, b } = handlers;",
            // What esbuild says about a mistake is more useful.
            "export {",
            "function a(",
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            assert!(
                functions(&SyntaxTree::read(file.path(), Grammar::TypeScript)).has_others,
                "{text}"
            );
        }
    }
}
