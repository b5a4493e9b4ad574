//! Capabilities that the sources use. They are compared with `plugin.toml` before the tools of a language run, because
//! these report only that a module or a symbol is missing.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use plugin_manifest::{Capability, Manifest};
use walkdir::{DirEntry, WalkDir};

use crate::project::ProjectFolder;

/// How deep in a project the build looks for sources, and the most that it reads there.
const MOST_DEPTH: usize = 8;
const MOST_FILES: usize = 1_000;

/// A place in the sources that uses a capability.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CapabilityUse {
    pub(super) capability: Capability,
    pub(super) file: PathBuf,
    /// Counted from 1.
    pub(super) line: usize,
}

/// Checks that `plugin.toml` asks for the capabilities that the sources use, or provides the actions of the same interfaces:
/// some modules of the SDKs are for both.
///
/// # Errors
/// It does not; the error names the first place and the line to add.
pub(super) fn check(project: &ProjectFolder, uses: Vec<CapabilityUse>) -> Result<()> {
    let manifest = &project.project.manifest;
    let is_declared = |used: &CapabilityUse| {
        let mut provides = manifest.provides.iter();
        manifest.asks_for(used.capability)
            || provides.any(|action| action.capability() == Some(used.capability))
    };
    let Some(used) = uses.into_iter().find(|used| !is_declared(used)) else {
        return Ok(());
    };
    let CapabilityUse {
        capability,
        file,
        line,
    } = used;
    let file = file.strip_prefix(&project.path).unwrap_or(&file);
    bail!(
        "`{capability}` is used in {}:{line}, but [capabilities] in plugin.toml does not ask for it: add \
         `{capability} = \"why\"`",
        file.display()
    );
}

/// Compares the capabilities of a manifest with the imports of the component, and returns a warning for each difference.
/// This is for components that import only what they use, as those in Rust do: `plugin!` may declare capabilities as well,
/// and a compiler drops functions that are never called, so the sources do not show it.
pub(super) fn warnings(manifest: &Manifest, imports: &[String]) -> Vec<String> {
    let interfaces: Vec<&str> = imports
        .iter()
        .filter_map(|import| import.split('@').next())
        .collect();
    let is_declared = |capability: &Capability| manifest.asks_for(*capability);
    let is_used = |capability: Capability| {
        interfaces
            .iter()
            .any(|it| capability.imports().contains(it))
    };
    let mut warnings = Vec::new();
    for need in &manifest.capabilities {
        let name = need.name;
        if !is_used(name) {
            warnings.push(format!(
                "[capabilities] in plugin.toml asks for `{name}`, but the component does not use it: leave it out"
            ));
        }
    }
    for interface in &interfaces {
        let all = Capability::all().iter().copied();
        let with: Vec<Capability> = all
            .filter(|capability| capability.imports().contains(interface))
            .collect();
        if let Some(first) = with.first()
            && !with.iter().any(is_declared)
        {
            warnings.push(format!(
                "the component imports `{interface}`, but [capabilities] in plugin.toml does not ask for `{first}`, so no \
                 device loads it: add `{first} = \"why\"`"
            ));
        }
    }
    warnings
}

/// Returns the capability with the interface `platform:supervisor/NAME`; the words of `name` may also be separated by
/// underscores. Interfaces that need no capability have none.
pub(super) fn find_capability(name: &str) -> Option<Capability> {
    let interface = format!("platform:supervisor/{}", name.replace('_', "-"));
    let mut all = Capability::all().iter().copied();
    all.find(|capability| capability.imports().contains(&interface.as_str()))
}

/// Returns the capability of a module of the SDK in JavaScript or Python. Most modules have the name of their interface;
/// `files` wraps interfaces of WASI.
pub(super) fn capability_of_module(name: &str) -> Option<Capability> {
    if name == "files" {
        return Some(Capability::Files);
    }
    find_capability(name)
}

/// Returns the files in `folder` whose names end with `extension`, sorted, so that the same sources result in the same
/// component and the same message.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn files_in(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let failed = || format!("cannot list `{}`", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(failed)? {
        let file = entry.with_context(failed)?.path();
        if file.extension().is_some_and(|found| found == extension) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the files anywhere in a project whose names end with `extension`, except those that the build has written: where
/// to look for the reason if a build has failed. What cannot be listed is left out.
pub(super) fn files_anywhere(project: &ProjectFolder, extension: &str) -> Vec<PathBuf> {
    let entries = WalkDir::new(&project.path)
        .max_depth(MOST_DEPTH)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| entry.path() != project.path.join("build"));
    let files = entries.flatten().map(DirEntry::into_path);
    files
        .filter(|file| file.extension().is_some_and(|found| found == extension))
        .take(MOST_FILES)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_between_capabilities_and_imports_is_a_warning() {
        let manifest = |capabilities: &[&str]| {
            let needs = capabilities
                .iter()
                .map(|name| format!("{{ name = \"{name}\", reason = \"why\" }}"));
            Manifest::parse(&format!(
                "name = \"x\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\nprovides = [\"identify\"]\ncapabilities = [{}]",
                needs.collect::<Vec<_>>().join(", ")
            ))
            .unwrap()
        };
        let shown = |capabilities: &[&str], imports: &[&str]| {
            let imports: Vec<String> = imports.iter().map(|import| (*import).to_owned()).collect();
            warnings(&manifest(capabilities), &imports)
        };
        let store = "platform:supervisor/store@1.4.0";
        let always = ["platform:supervisor/log@1.4.0", "wasi:io/poll@0.2.6"];
        assert!(shown(&[], &always).is_empty());
        assert!(shown(&["store"], &[store, always[0]]).is_empty());
        assert_eq!(
            shown(&["led", "store"], &[store]),
            [
                "[capabilities] in plugin.toml asks for `led`, but the component does not use it: leave it out"
            ]
        );
        assert_eq!(
            shown(&[], &[store]),
            [
                "the component imports `platform:supervisor/store`, but [capabilities] in plugin.toml does not ask for \
                 `store`, so no device loads it: add `store = \"why\"`"
            ]
        );
        // Two capabilities have this interface.
        let clocks = "wasi:clocks/wall-clock@0.2.6";
        assert!(shown(&["clock"], &[clocks]).is_empty());
        assert!(shown(&["files"], &[clocks]).is_empty());
    }

    #[test]
    fn interfaces_of_capabilities_are_found_by_either_spelling() {
        for (name, expected) in [
            ("store", Some(Capability::Store)),
            ("host-name", Some(Capability::HostName)),
            ("host_name", Some(Capability::HostName)),
            ("http", Some(Capability::Http)),
            ("log", None),
            ("clock", None),
            ("", None),
        ] {
            assert_eq!(find_capability(name), expected, "{name}");
            assert_eq!(capability_of_module(name), expected, "{name}");
        }
        // In Go and C, `files` is a name of the author's own.
        assert_eq!(find_capability("files"), None);
        assert_eq!(capability_of_module("files"), Some(Capability::Files));
    }
}
