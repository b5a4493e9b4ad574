//! What the sources of a plugin in JavaScript or TypeScript import of the SDK.

use std::path::{Path, PathBuf};

use crate::languages::capability_use::{CapabilityUse, capability_of_module};
use crate::languages::syntax_tree::{Capture, Grammar, SyntaxTree};
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
        (import_clause (named_imports (import_specifier name: (_) @name alias: (_)? @alias)))
        source: (string (string_fragment) @module))
    (export_statement
        (export_clause (export_specifier name: (_) @exported))
        source: (string (string_fragment) @module))";
/// The names of `import * as NAME`.
const NAMESPACES: &str = "
    (import_statement
        (import_clause (namespace_import (identifier) @namespace))
        source: (string (string_fragment) @module))";
const MEMBERS: &str = "
    (member_expression object: (identifier) @object property: (property_identifier) @property)";
const IMPORT_STATEMENTS: &str = "(import_statement) @found";
const IDENTIFIERS: &str = "[(identifier) (shorthand_property_identifier)] @found";

/// Reads a source.
pub(super) fn read(file: &Path) -> SyntaxTree {
    let is_typescript = file.extension().is_some_and(|extension| extension == "ts");
    let grammar = if is_typescript {
        Grammar::TypeScript
    } else {
        Grammar::JavaScript
    };
    SyntaxTree::read(file, grammar)
}

/// Reads the main source, and the project's files that it imports, directly or not.
pub(super) fn sources(main: &Path) -> Vec<SyntaxTree> {
    let mut sources: Vec<SyntaxTree> = Vec::new();
    let mut next = vec![main.to_owned()];
    while let Some(file) = next.pop() {
        if sources.iter().any(|source| source.file == file) {
            continue;
        }
        let source = read(&file);
        let modules = source.find(MODULES).map(|module| module.text);
        let of_project = modules.filter(|module| module.starts_with('.'));
        next.extend(of_project.filter_map(|module| imported_file(&file, module)));
        sources.push(source);
    }
    sources
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
    let is_sdk = |module: &Option<Capture>| module.is_some_and(|module| module.text == SDK);
    let mut found = Vec::new();
    for [name, alias, exported, module] in
        source.matches(NAMES, ["name", "alias", "exported", "module"])
    {
        let local = alias.or(name);
        let is_used = || local.is_none_or(|local| uses_name(source, local.text));
        if is_sdk(&module) && is_used() {
            found.extend(name.or(exported).map(|name| (name, name.text)));
        }
    }
    for [namespace, module] in source.matches(NAMESPACES, ["namespace", "module"]) {
        let Some(namespace) = namespace.filter(|_| is_sdk(&module)) else {
            continue;
        };
        let members = source.matches(MEMBERS, ["object", "property"]).into_iter();
        found.extend(members.filter_map(|[object, property]| {
            let object = object.filter(|object| object.text == namespace.text)?;
            Some((object, property?.text))
        }));
    }
    let uses = found.into_iter().filter_map(|(place, module)| {
        Some(CapabilityUse {
            capability: capability_of(module)?,
            file: source.file.clone(),
            line: place.line,
        })
    });
    uses.collect()
}

/// Whether a source uses a name that it imports.
fn uses_name(source: &SyntaxTree, name: &str) -> bool {
    let imports = source.ranges(IMPORT_STATEMENTS);
    let mut uses = source.find(IDENTIFIERS);
    uses.any(|used| used.text == name && !imports.contain(&used))
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
    let named = file.parent()?.join(module);
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
        let uses = capability_uses(&sources(&folder.path().join("plugin.js"))).into_iter();
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
}
