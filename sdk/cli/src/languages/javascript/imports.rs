//! What the sources of a plugin in JavaScript or TypeScript import of the SDK.

use std::path::{Path, PathBuf};

use crate::languages::capability_use::{CapabilityUse, capability_of_module};
use crate::languages::source_code::{Syntax, code_of};
use crate::languages::typed_actions::{ProviderUse, find_provider_use};

/// The name of the SDK in the sources.
const SDK: &str = "supervisor-sdk";
/// The module that only a provider of `identify` can use.
const WINDOW: &str = "identifyWindow";
/// The extensions that the name of an imported file may lack.
const EXTENSIONS: [&str; 3] = ["ts", "js", "mjs"];

/// A statement that imports a module, or exports from it.
struct Import<'a> {
    /// What is between the keyword and `from`.
    clause: &'a str,
    /// The position of the clause in the code.
    start: usize,
    module: &'a str,
    exports: bool,
}

/// Returns `source`, and the project's files that it imports, directly or not.
pub(super) fn files(source: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut next = vec![source.to_owned()];
    while let Some(file) = next.pop() {
        if files.contains(&file) {
            continue;
        }
        let code = code_of(&file, Syntax::JavaScript);
        let imports = imports(&code).into_iter();
        let of_project = imports.filter(|import| import.module.starts_with('.'));
        next.extend(of_project.filter_map(|import| imported_file(&file, import.module)));
        files.push(file);
    }
    files
}

/// Returns the capabilities that files use by the SDK's names. A name that is only imported is not used: the bundle does not
/// contain it.
pub(super) fn capability_uses(files: &[PathBuf]) -> Vec<CapabilityUse> {
    let mut uses = Vec::new();
    for file in files {
        let code = code_of(file, Syntax::JavaScript);
        for import in imports(&code) {
            if import.module == SDK {
                uses.extend(uses_of(&import, &code, file));
            }
        }
    }
    uses
}

/// Returns what a source imports of the SDK to provide actions.
pub(super) fn provider_uses(source: &Path) -> Vec<ProviderUse> {
    let code = code_of(source, Syntax::JavaScript);
    let of_sdk = imports(&code)
        .into_iter()
        .filter(|import| import.module == SDK);
    let uses = of_sdk.filter_map(|import| {
        let place = import.start + words(import.clause, WINDOW).next()?;
        let line = code[..place].matches('\n').count() + 1;
        find_provider_use("identify_window", source, line)
    });
    uses.collect()
}

/// Returns the import statements of a source without comments.
fn imports(code: &str) -> Vec<Import<'_>> {
    let mut imports = Vec::new();
    for (keyword, exports) in [("import", false), ("export", true)] {
        for at in words(code, keyword) {
            let start = at + keyword.len();
            let rest = &code[start..];
            let Some((head, tail)) = rest.split_once(['"', '\'']) else {
                continue;
            };
            let Some(clause) = head.trim_end().strip_suffix("from") else {
                continue;
            };
            let is_clause = |char: char| is_part_of_word(char) || " \r\n\t{},*".contains(char);
            if !clause.chars().all(is_clause) {
                continue;
            }
            let module = tail.split(['"', '\'']).next().unwrap_or_default();
            imports.push(Import {
                clause,
                start,
                module,
                exports,
            });
        }
    }
    imports
}

/// Returns the capabilities that a source uses by one of its imports of the SDK.
fn uses_of(import: &Import<'_>, code: &str, file: &Path) -> Vec<CapabilityUse> {
    let Import {
        clause,
        start,
        exports,
        ..
    } = *import;
    let at = |capability, place: usize| CapabilityUse {
        capability,
        file: file.to_owned(),
        line: code[..place].matches('\n').count() + 1,
    };
    let is_outside = |place: &usize| !(start..start + clause.len()).contains(place);
    // `import * as sdk`: the names follow a dot.
    if let Some((_, namespace)) = clause.split_once("* as ") {
        let uses = words(code, namespace.trim()).filter_map(|place| {
            let member = code[place + namespace.trim().len()..].strip_prefix('.')?;
            let name = member.split(|char| !is_part_of_word(char)).next()?;
            Some(at(capability_of(name)?, place))
        });
        return uses.collect();
    }
    let Some((_, names)) = clause.split_once('{') else {
        return Vec::new();
    };
    let names = names.split(['}', ',']).map(str::trim);
    let uses = names.filter_map(|name| {
        let (name, local) = name.split_once(" as ").unwrap_or((name, name));
        let capability = capability_of(name)?;
        let is_used = exports || words(code, local.trim()).any(|place| is_outside(&place));
        let place = start + words(clause, name).next()?;
        is_used.then(|| at(capability, place))
    });
    uses.collect()
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

/// Returns the positions of a word.
pub(super) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let found = code.match_indices(word).map(|(place, _)| place);
    found.filter(move |place| {
        let before = code[..*place].chars().next_back();
        let after = code[place + word.len()..].chars().next();
        !word.is_empty()
            && !before.is_some_and(is_part_of_word)
            && !after.is_some_and(is_part_of_word)
    })
}

fn is_part_of_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_' || char == '$'
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
        let uses = capability_uses(&super::files(&folder.path().join("plugin.js"))).into_iter();
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
