//! What the sources of a plugin in JavaScript or TypeScript import of the SDK.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::languages::capability_use::{CapabilityUse, capability_of_module};
use crate::languages::syntax_tree::{Capture, Grammar, SyntaxTree, has_keyword};
use crate::languages::typed_actions::{ProviderUse, find_provider_use};

/// The name of the SDK in the sources.
const SDK: &str = "supervisor-sdk";
/// The module that only a provider of `identify` can use.
const WINDOW: &str = "identifyWindow";
/// The extensions that the name of an imported file may lack.
const EXTENSIONS: [&str; 3] = ["ts", "js", "mjs"];

const MODULES: &str = "
    (import_statement source: (string (string_fragment) @found))
    (export_statement source: (string (string_fragment) @found))";
/// Names that a source imports, each with the name that it has in the source, or exports at once.
const NAMES: &str = "
    (import_statement
        (import_clause (named_imports (import_specifier name: (_) @name alias: (_)? @alias) @specifier))
        source: (string (string_fragment) @module)) @statement
    (export_statement
        (export_clause (export_specifier name: (_) @exported) @specifier)
        source: (string (string_fragment) @module)) @statement";
/// The names of `import * as NAME`.
const NAMESPACES: &str = "
    (import_statement
        (import_clause (namespace_import (identifier) @namespace))
        source: (string (string_fragment) @module))";
const MEMBERS: &str = "
    (member_expression object: (identifier) @object property: (property_identifier) @property)";
/// Where a name is not used.
const IMPORT_STATEMENTS: &str = "(import_statement) @found";
/// The same in TypeScript, where types are not in the bundle either.
const IMPORTS_AND_TYPES: &str = "[(import_statement) (type_query) (nested_type_identifier)] @found";
const IDENTIFIERS: &str = "[(identifier) (shorthand_property_identifier)] @found";

/// Reads a source.
pub(super) fn read(file: &Path) -> SyntaxTree {
    let extension = file.extension().and_then(OsStr::to_str);
    let grammar = match extension {
        Some("ts" | "mts" | "cts") => Grammar::TypeScript,
        _ => Grammar::JavaScript,
    };
    SyntaxTree::read(file, grammar)
}

/// Returns the main source, and reads the project's files that it imports, directly or not.
pub(super) fn with_imports(main: SyntaxTree) -> Vec<SyntaxTree> {
    let mut next = imported_files(&main);
    let mut sources = vec![main];
    while let Some(file) = next.pop() {
        if sources.iter().all(|source| source.file != file) {
            let source = read(&file);
            next.extend(imported_files(&source));
            sources.push(source);
        }
    }
    sources
}

/// Returns the project's files that a source imports.
fn imported_files(source: &SyntaxTree) -> Vec<PathBuf> {
    let modules = source.find(MODULES).map(|module| module.text);
    let of_project = modules.filter(|module| module.starts_with('.'));
    let files = of_project.filter_map(|module| imported_file(&source.file, module));
    files.collect()
}

/// Returns the capabilities that sources use by the SDK's names. A name that is only imported is not used: the bundle does
/// not contain it.
pub(super) fn capability_uses(sources: &[SyntaxTree]) -> Vec<CapabilityUse> {
    sources.iter().flat_map(uses_of_source).collect()
}

/// Returns what a source imports of the SDK to provide actions.
pub(super) fn provider_uses(source: &SyntaxTree) -> Vec<ProviderUse> {
    let names = source.matches(NAMES, ["name", "module"]).into_iter();
    let uses = names.filter_map(|[name, module]| {
        let is_window = name?.text == WINDOW && module?.text == SDK;
        let action = is_window.then_some("identify_window")?;
        find_provider_use(action, &source.file, name?.line)
    });
    uses.collect()
}

fn uses_of_source(source: &SyntaxTree) -> Vec<CapabilityUse> {
    let is_sdk = |module: Option<Capture>| module.is_some_and(|module| module.text == SDK);
    let mut uses = Vec::new();
    let mut add = |name: &str, line: usize| {
        uses.extend(capability_of(name).map(|capability| CapabilityUse {
            capability,
            file: source.file.clone(),
            line,
        }));
    };
    let used = used_names(source);
    let names = [
        "statement",
        "specifier",
        "name",
        "alias",
        "exported",
        "module",
    ];
    for [statement, specifier, name, alias, exported, module] in source.matches(NAMES, names) {
        let is_type = has_keyword(statement, "type") || has_keyword(specifier, "type");
        let local = alias.or(name);
        let is_used = local.is_none_or(|local| used.contains(local.text));
        if let Some(name) = name
            .or(exported)
            .filter(|_| is_sdk(module) && is_used && !is_type)
        {
            add(name.text, name.line);
        }
    }
    for [namespace, module] in source.matches(NAMESPACES, ["namespace", "module"]) {
        let Some(namespace) = namespace.filter(|_| is_sdk(module)) else {
            continue;
        };
        for [object, property] in source.matches(MEMBERS, ["object", "property"]) {
            if let (Some(object), Some(property)) = (object, property)
                && object.text == namespace.text
            {
                add(property.text, object.line);
            }
        }
    }
    uses
}

/// Returns the names that a source uses apart from importing them.
fn used_names(source: &SyntaxTree) -> BTreeSet<&str> {
    let left_out = source.ranges(match source.grammar {
        Grammar::TypeScript => IMPORTS_AND_TYPES,
        _ => IMPORT_STATEMENTS,
    });
    let names = source.find(IDENTIFIERS);
    let names = names.filter(|name| !left_out.contain(name));
    names.map(|name| name.text).collect()
}

/// Returns the capability of a module of the SDK, such as `hostName`.
fn capability_of(module: &str) -> Option<plugin_manifest::Capability> {
    let mut name = String::new();
    for char in module.chars() {
        if char.is_ascii_uppercase() {
            name.push('-');
        }
        name.push(char.to_ascii_lowercase());
    }
    capability_of_module(&name)
}

/// Returns the file that `file` imports as `module`, which may lack its extension, or name the JavaScript that
/// TypeScript becomes.
fn imported_file(file: &Path, module: &str) -> Option<PathBuf> {
    let named = joined(file.parent()?, module);
    let added = EXTENSIONS.map(|extension| {
        let mut name = named.clone().into_os_string();
        name.push(".");
        name.push(extension);
        PathBuf::from(name)
    });
    let indices = EXTENSIONS.map(|extension| named.join(format!("index.{extension}")));
    let written = [named.clone(), named.with_extension("ts")];
    let mut candidates = written.into_iter().chain(added).chain(indices);
    candidates.find(|candidate| candidate.is_file())
}

/// Joins a relative path to a folder, without `..`: files that import each other through their parent's folder have one
/// path each.
fn joined(folder: &Path, relative: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for component in Path::new(relative).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            other => path.push(other),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use plugin_manifest::Capability;

    use super::*;

    /// Returns the uses in `plugin.js`, each as the capability, the name of the file and the line.
    fn uses(files: &[(&str, &str)]) -> Vec<(Capability, String, usize)> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let uses =
            capability_uses(&with_imports(read(&folder.path().join("plugin.js")))).into_iter();
        uses.map(|used| {
            let file = used.file.file_name().unwrap();
            (
                used.capability,
                file.to_string_lossy().into_owned(),
                used.line,
            )
        })
        .collect()
    }

    #[test]
    fn a_capability_is_used_where_its_module_is_imported_and_used() {
        use Capability::{Files, HostName, Led, Store};
        for (text, expected) in [
            (
                "import { store } from \"supervisor-sdk\";\nstore.get(\"a\");",
                &[(Store, 1)][..],
            ),
            (
                "\nimport {\n  log,\n  hostName as host,\n  led,\n} from 'supervisor-sdk';\nlog.info(host, led);",
                &[(HostName, 4), (Led, 5)],
            ),
            (
                "import * as sdk from \"supervisor-sdk\";\n\nsdk.store.get(sdk.timer, sdk.hostName);",
                &[(Store, 3), (HostName, 3)],
            ),
            ("export { store } from \"supervisor-sdk\";", &[(Store, 1)]),
            (
                "import { files } from \"supervisor-sdk\";\nfiles.read(\"/rails/5v\");",
                &[(Files, 1)],
            ),
            // The bundle does not contain what is only imported.
            ("import { store } from \"supervisor-sdk\";", &[]),
            (
                "import { type Request, store } from \"supervisor-sdk\";\nrestore();",
                &[],
            ),
            (
                "// import { store } from \"supervisor-sdk\";\nstore.get();",
                &[],
            ),
            (
                "import { store } from \"./own.js\";\nstore.get();\nimport(\"supervisor-sdk\");",
                &[],
            ),
            (
                "import \"supervisor-sdk\";\nexport const from = \"a\";",
                &[],
            ),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|(capability, line)| (*capability, "plugin.js".to_owned(), *line))
                .collect();
            assert_eq!(uses(&[("plugin.js", text)]), expected, "{text}");
        }
    }

    #[test]
    fn files_that_the_plugin_imports_are_part_of_it() {
        let other =
            "import { gpio } from \"supervisor-sdk\";\nimport \"./plugin.js\";\ngpio.read(\"a\");";
        for (import, file) in [
            ("./own.js", "own.js"),
            ("./own.js", "own.ts"),
            ("./own", "own.mjs"),
        ] {
            let plugin = format!("import {{ a }} from \"{import}\";\n");
            assert_eq!(
                uses(&[("plugin.js", &plugin), (file, other)]),
                [(Capability::Gpio, file.to_owned(), 1)]
            );
        }
        assert_eq!(uses(&[("plugin.js", ""), ("own.js", other)]), []);
    }

    #[test]
    fn a_capability_that_typescript_uses_as_a_type_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plugin.ts");
        for (text, expected) in [
            (
                "import { led } from \"supervisor-sdk\";\nled.names();",
                &[Capability::Led][..],
            ),
            (
                "import type { store } from \"supervisor-sdk\";\nlet a: typeof store;",
                &[],
            ),
            (
                "import { type led, type Request } from \"supervisor-sdk\";\nlet a: led.Light;",
                &[],
            ),
            (
                "import { led, store } from \"supervisor-sdk\";\nlet a: led.Light, b: typeof store;",
                &[],
            ),
            ("export type { led } from \"supervisor-sdk\";", &[]),
            ("export { type led } from \"supervisor-sdk\";", &[]),
        ] {
            std::fs::write(&file, text).unwrap();
            let uses = capability_uses(&with_imports(read(&file))).into_iter();
            let found: Vec<_> = uses.map(|used| used.capability).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn files_that_import_each_other_through_other_folders_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        let main = folder.path().join("plugin.ts");
        std::fs::write(&main, "import { a } from \"./lib/a\";").unwrap();
        let other = "import type { B } from \"../plugin\";\nimport \"../lib/./a\";";
        std::fs::write(folder.path().join("lib/a.ts"), other).unwrap();
        let files: Vec<_> = with_imports(read(&main))
            .into_iter()
            .map(|source| source.file)
            .collect();
        assert_eq!(files, [main, folder.path().join("lib/a.ts")]);
    }
}
