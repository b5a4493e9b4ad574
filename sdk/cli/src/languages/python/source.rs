//! What the sources of a plugin in Python import of the SDK, and the functions that the main source defines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::languages::capability_use::{CapabilityUse, capability_of_module};
use crate::languages::source_functions::SourceFunctions;
use crate::languages::syntax_tree::{Capture, Grammar, SyntaxTree};
use crate::languages::typed_actions::{ProviderUse, find_provider_use};

/// The package of the SDK.
const SDK: &str = "supervisor_sdk";

/// Imports at the top level: `import MODULE as LOCAL`, and `from PACKAGE import NAME`. Others may never be executed.
const IMPORTS: &str = "
    (module (import_statement name: [
        (dotted_name) @module
        (aliased_import name: (dotted_name) @module alias: (identifier) @local)
    ]))
    (module (import_from_statement module_name: (dotted_name) @package [
        name: (dotted_name) @name
        name: (aliased_import name: (dotted_name) @name)
        (wildcard_import) @name
    ]))";
const MEMBERS: &str = "(attribute object: (identifier) @object attribute: (identifier) @member)";
/// The functions of the module itself.
const FUNCTIONS: &str = "(module [
    (function_definition name: (identifier) @found)
    (decorated_definition definition: (function_definition name: (identifier) @found))
])";
/// What is only in a function or class, and no name of the module.
const BODIES: &str = "
    (function_definition body: (_) @found)
    (class_definition body: (_) @found)";
/// What is defined, assigned or imported, in a block or not.
const NAMES: &str = "
    (function_definition name: (identifier) @found)
    (class_definition name: (identifier) @found)
    (assignment left: (identifier) @found)
    (assignment left: (_ (identifier) @found))
    (assignment left: (_ (_ (identifier) @found)))
    (named_expression name: (identifier) @found)
    (for_statement left: (identifier) @found)
    (as_pattern_target (identifier) @found)
    (import_statement name: (dotted_name (identifier) @found))
    (import_from_statement name: (dotted_name (identifier) @found))
    (aliased_import alias: (identifier) @found)";
/// What gives a module names that only Python can find.
const OTHERS: &str = r#"
    (wildcard_import) @found
    (global_statement) @found
    ((identifier) @found (#any-of? @found "globals" "vars" "setattr" "__getattr__"))"#;

/// An import of a source.
enum Import<'tree> {
    /// A module, with the name that it has in the source.
    Module {
        module: Capture<'tree>,
        local: &'tree str,
    },
    /// A name of a package.
    Name {
        package: &'tree str,
        name: Capture<'tree>,
    },
}

/// Reads a source.
pub(super) fn read(file: &Path) -> SyntaxTree {
    SyntaxTree::read(file, Grammar::Python)
}

/// Returns the capabilities that `main`, and the project's files that it imports, use by the names of the SDK.
pub(super) fn capability_uses(main: &Path) -> Vec<CapabilityUse> {
    let folder = main.parent().unwrap_or(Path::new(""));
    let mut uses = Vec::new();
    let mut files = vec![main.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(file) = files.pop() {
        if !seen.insert(file.clone()) {
            continue;
        }
        let source = read(&file);
        let mut add = |name: &str, line: usize| {
            uses.extend(capability_of_module(name).map(|capability| CapabilityUse {
                capability,
                file: file.clone(),
                line,
            }));
        };
        for import in imports(&source) {
            let (module, line) = match import {
                Import::Name { package: SDK, name } => {
                    add(name.text, name.line);
                    continue;
                }
                Import::Module { module, local } if module.text == SDK => {
                    for member in members(&source, local) {
                        add(member.text, member.line);
                    }
                    continue;
                }
                Import::Module { module, .. } => (module.text, module.line),
                Import::Name { package, name } => (package, name.line),
            };
            match module.strip_prefix("supervisor_sdk.") {
                Some(name) => add(name, line),
                None => files.extend(imported_file(folder, module)),
            }
        }
    }
    uses
}

/// Returns what a source imports of the SDK to provide actions.
pub(super) fn provider_uses(source: &SyntaxTree) -> Vec<ProviderUse> {
    let uses = imports(source).filter_map(|import| {
        let (module, line) = match import {
            Import::Name { package: SDK, name } => (name.text, name.line),
            Import::Name { package, name } => (package.strip_prefix("supervisor_sdk.")?, name.line),
            Import::Module { module, .. } => {
                (module.text.strip_prefix("supervisor_sdk.")?, module.line)
            }
        };
        find_provider_use(module, &source.file, line)
    });
    uses.collect()
}

/// Returns the imports of a source.
fn imports(source: &SyntaxTree) -> impl Iterator<Item = Import<'_>> {
    let found = source.matches(IMPORTS, ["module", "local", "package", "name"]);
    found
        .into_iter()
        .filter_map(|[module, local, package, name]| match module {
            Some(module) => Some(Import::Module {
                module,
                local: local.unwrap_or(module).text,
            }),
            None => Some(Import::Name {
                package: package?.text,
                name: name?,
            }),
        })
}

/// Returns the members of a module, which has this name in the source, that a source uses.
fn members<'tree>(source: &'tree SyntaxTree, module: &str) -> impl Iterator<Item = Capture<'tree>> {
    let found = source.matches(MEMBERS, ["object", "member"]).into_iter();
    found.filter_map(move |[object, member]| {
        member.filter(|_| object.is_some_and(|it| it.text == module))
    })
}

/// Returns the project's file for a module, if there is one.
fn imported_file(folder: &Path, module: &str) -> Option<PathBuf> {
    let path = folder.join(module.replace('.', "/"));
    let candidates = [path.with_extension("py"), path.join("__init__.py")];
    candidates.into_iter().find(|file| file.is_file())
}

/// Returns the functions of a source. Any of its names may stand for a function; those that `def` begins at the top level
/// are listed.
pub(super) fn functions(source: &SyntaxTree) -> SourceFunctions {
    let mut functions = SourceFunctions::default();
    for name in source.find(FUNCTIONS) {
        functions.add(name.text);
    }
    let bodies = source.ranges(BODIES);
    let names = source.find(NAMES).filter(|name| !bodies.contain(name));
    functions
        .names
        .extend(names.map(|name| name.text.to_owned()));
    functions.has_others = source.has_errors() || source.find(OTHERS).next().is_some();
    functions
}

#[cfg(test)]
mod tests {
    use plugin_manifest::Capability;

    use super::*;

    /// Returns the uses in `plugin.py`, each as the capability, the name of the file and the line.
    fn uses(files: &[(&str, &str)]) -> Vec<(Capability, String, usize)> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let uses = capability_uses(&folder.path().join("plugin.py")).into_iter();
        uses.map(|used| {
            let file = used.file.file_name().unwrap();
            let file = file.to_string_lossy().into_owned();
            (used.capability, file, used.line)
        })
        .collect()
    }

    #[test]
    fn a_capability_is_used_where_its_module_is_imported() {
        use Capability::{HostName, Led, Store};
        for (text, expected) in [
            (
                "from supervisor_sdk import NotFound, store\n",
                &[(Store, 1)][..],
            ),
            (
                "import json\nfrom supervisor_sdk import (\n    log,  # a\n    host_name as host,\n    led,\n)\n",
                &[(HostName, 4), (Led, 5)],
            ),
            (
                "from supervisor_sdk import (store, led)\n",
                &[(Store, 1), (Led, 1)],
            ),
            (
                "import supervisor_sdk\n\nsupervisor_sdk.store.get(supervisor_sdk.timer)\n",
                &[(Store, 3)],
            ),
            (
                "import json, supervisor_sdk as sdk\nx = sdk.host_name.get()\n",
                &[(HostName, 2)],
            ),
            ("from supervisor_sdk.store import get\n", &[(Store, 1)]),
            ("import supervisor_sdk.led\n", &[(Led, 1)]),
            // It may never be executed.
            (
                "if TYPE_CHECKING:\n    from supervisor_sdk import store\n",
                &[],
            ),
            ("# from supervisor_sdk import store\n", &[]),
            ("\"\"\"\nfrom supervisor_sdk import store\n\"\"\"\n", &[]),
            (
                "from own import store\nimport supervisor_sdk\nmy_supervisor_sdk.store\n",
                &[],
            ),
            (
                "from supervisor_sdk import *\nfrom supervisor_sdk import\nimport\n",
                &[],
            ),
            ("from supervisor_sdk import (", &[]),
            ("", &[]),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|(capability, line)| (*capability, "plugin.py".to_owned(), *line))
                .collect();
            assert_eq!(uses(&[("plugin.py", text)]), expected, "{text}");
        }
    }

    #[test]
    fn files_that_the_plugin_imports_are_part_of_it() {
        let other = "import plugin\nfrom supervisor_sdk import gpio\n";
        for import in [
            "import own\n",
            "from own import a\n",
            "import json, own as o\n",
        ] {
            let found = uses(&[("plugin.py", import), ("own.py", other)]);
            assert_eq!(
                found,
                [(Capability::Gpio, "own.py".to_owned(), 2)],
                "{import}"
            );
        }
        assert_eq!(uses(&[("plugin.py", ""), ("own.py", other)]), []);
    }

    #[test]
    fn the_functions_of_a_source_are_listed_and_its_other_names_are_known() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        write(
            "import json\nfrom own import reset, show as shown\nfrom other import (\n    first,\n    last\n)\n\n# def gone\n\
             async def hello(name: str):\n    return \"def text\"\n\n\ndef rail():\n    def inner_function(): ...\n\n\n\
             if True:\n    def chosen(): ...\n\nalias = hello\nclass Handler: ...\n\
             pair, (inner, *rest) = handlers\nprint(walrus := hello)\nfor each in []: ...\nwith a as opened: ...\n",
        );
        let found = functions(&read(file.path()));
        assert_eq!(found.listed, ["hello", "rail"]);
        for name in [
            "hello", "rail", "reset", "shown", "first", "last", "chosen", "alias", "Handler",
            "pair", "inner", "walrus", "each", "opened",
        ] {
            assert!(found.names.contains(name), "{name}");
        }
        for name in ["gone", "text", "greet", "inner_function"] {
            assert!(!found.names.contains(name), "{name}");
        }
        assert!(!found.has_others);
        write("from own import *\n");
        assert!(functions(&read(file.path())).has_others);
    }
}
