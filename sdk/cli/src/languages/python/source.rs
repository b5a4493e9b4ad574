//! What the sources of a plugin in Python import of the SDK, and the functions that the main source defines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plugin_manifest::Capability;

use super::code::without_comments_and_strings;
use crate::languages::capability_use::{CapabilityUse, capability_of_module};
use crate::languages::source_functions::{SourceFunctions, first_word, name_after};
use crate::languages::typed_actions::{ProviderUse, find_provider_use};

/// The package of the SDK.
const SDK: &str = "supervisor_sdk";

/// An import at the top level of a source. Others may never be executed.
enum Import<'a> {
    /// `import MODULE`, or `import MODULE as NAME`.
    Module { module: &'a str, name: &'a str },
    /// A name of `from MODULE import NAME`.
    Name { module: &'a str, name: &'a str },
}

/// Reads a source without its comments and strings. A file that cannot be read is empty: Python says what is wrong with
/// it.
fn code_of(file: &Path) -> String {
    without_comments_and_strings(&std::fs::read_to_string(file).unwrap_or_default())
}

/// Returns the capabilities that `source`, and the project's files that it imports, use by the names of the SDK.
pub(super) fn capability_uses(source: &Path) -> Vec<CapabilityUse> {
    let folder = source.parent().unwrap_or(Path::new(""));
    let mut uses = Vec::new();
    let mut files = vec![source.to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(file) = files.pop() {
        if !seen.insert(file.clone()) {
            continue;
        }
        let code = code_of(&file);
        for (line, import) in imports(&code) {
            let mut add = |capability: Capability, line: usize| {
                uses.push(CapabilityUse {
                    capability,
                    file: file.clone(),
                    line,
                });
            };
            match import {
                Import::Name { module: SDK, name } => {
                    if let Some(capability) = capability_of_module(name) {
                        add(capability, line);
                    }
                }
                Import::Module { module: SDK, name } => {
                    for (line, capability) in members(&code, name) {
                        add(capability, line);
                    }
                }
                Import::Module { module, .. } | Import::Name { module, .. } => {
                    let of_sdk = module.strip_prefix("supervisor_sdk.");
                    match of_sdk.map(capability_of_module) {
                        Some(Some(capability)) => add(capability, line),
                        Some(None) => {}
                        None => files.extend(imported_file(folder, module)),
                    }
                }
            }
        }
    }
    uses
}

/// Returns what a source imports of the SDK to provide actions.
pub(super) fn provider_uses(source: &Path) -> Vec<ProviderUse> {
    let code = code_of(source);
    let uses = imports(&code).into_iter().filter_map(|(line, import)| {
        let module = match import {
            Import::Name { module: SDK, name } => name,
            Import::Name { module, .. } | Import::Module { module, .. } => {
                module.strip_prefix("supervisor_sdk.")?
            }
        };
        find_provider_use(module, source, line)
    });
    uses.collect()
}

/// Returns the imports of a source, each with its line.
fn imports(code: &str) -> Vec<(usize, Import<'_>)> {
    let mut imports = Vec::new();
    let mut start = 0;
    for (index, text) in code.split_inclusive('\n').enumerate() {
        let line = index + 1;
        if let Some(modules) = text.strip_prefix("import ") {
            for module in modules.split(',') {
                let (module, name) = named(module);
                imports.push((line, Import::Module { module, name }));
            }
        } else if let Some((module, names)) = text
            .strip_prefix("from ")
            .and_then(|rest| rest.split_once(" import "))
        {
            let module = module.trim();
            // Names in parentheses may continue in other lines.
            let (names, line_of_first) = match names.trim_start().strip_prefix('(') {
                Some(_) => {
                    let rest = &code[start + text.len() - names.len()..];
                    let rest = &rest[rest.find('(').map_or(0, |at| at + 1)..];
                    (rest.split(')').next().unwrap_or_default(), line)
                }
                None => (names, line),
            };
            let mut line = line_of_first;
            for name in names.split(',') {
                let blank = name.len() - name.trim_start().len();
                line += name[..blank].matches('\n').count();
                let (name_of, _) = named(name);
                if !name_of.is_empty() {
                    imports.push((
                        line,
                        Import::Name {
                            module,
                            name: name_of,
                        },
                    ));
                }
                line += name[blank..].matches('\n').count();
            }
        }
        start += text.len();
    }
    imports
}

/// Splits `a.b as c` into what is imported and its name in the source.
fn named(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.split_once(" as ") {
        Some((imported, name)) => (imported.trim(), name.trim()),
        None => (text, text),
    }
}

/// Returns the capabilities that a source uses as members of a module with this name, each with its line.
fn members<'a>(code: &'a str, module: &'a str) -> impl Iterator<Item = (usize, Capability)> + 'a {
    let is_word = |char: char| char.is_alphanumeric() || char == '_' || char == '.';
    code.lines().enumerate().flat_map(move |(index, line)| {
        let words = line.split(move |char| !is_word(char));
        words.filter_map(move |word| {
            let member = word.strip_prefix(module)?.strip_prefix('.')?;
            let name = member.split('.').next().unwrap_or_default();
            Some((index + 1, capability_of_module(name)?))
        })
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
pub(super) fn functions(source: &Path) -> SourceFunctions {
    let code = code_of(source);
    let mut functions = SourceFunctions::default();
    for line in code.lines() {
        if let Some(name) = name_after(line, &["async"], &["def"]) {
            functions.add(name);
        }
        let inner = line.trim_start();
        functions.has_others |= inner.starts_with("from ") && inner.contains(" import *");
    }
    functions.has_others |= code.contains("globals(") || code.contains("__getattr__");
    for name in names(&code) {
        functions.names.insert(name.to_owned());
    }
    functions
}

/// Returns what a source defines, assigns or imports, in a block or not.
fn names(code: &str) -> impl Iterator<Item = &str> {
    let defined = code.lines().filter_map(|line| {
        let line = line.trim_start();
        name_after(line, &["async"], &["def", "class"]).or_else(|| {
            let name = first_word(line)?;
            let after = line[name.len()..].trim_start();
            let is_assigned = after.starts_with('=') && !after.starts_with("==");
            (is_assigned || after.starts_with(':') || after.starts_with(',')).then_some(name)
        })
    });
    let imported = code
        .lines()
        .filter(|line| {
            let line = line.trim_start();
            line.starts_with("import ") || line.starts_with("from ") || line.ends_with(',')
        })
        .flat_map(|line| line.split(|char: char| !(char.is_alphanumeric() || char == '_')));
    let in_parentheses = imports(code).into_iter().map(|(_, import)| match import {
        Import::Module { name, .. } | Import::Name { name, .. } => name,
    });
    defined.chain(imported).chain(in_parentheses)
}

#[cfg(test)]
mod tests {
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
             async def hello(name: str):\n    return \"def text\"\n\n\ndef rail():\n    def inner(): ...\n\n\n\
             if True:\n    def chosen(): ...\n\nalias = hello\nclass Handler: ...\n",
        );
        let found = functions(file.path());
        assert_eq!(found.listed, ["hello", "rail"]);
        for name in [
            "hello", "rail", "reset", "shown", "first", "last", "chosen", "alias", "Handler",
        ] {
            assert!(found.names.contains(name), "{name}");
        }
        for name in ["gone", "text", "greet"] {
            assert!(!found.names.contains(name), "{name}");
        }
        assert!(!found.has_others);
        write("from own import *\n");
        assert!(functions(file.path()).has_others);
    }
}
