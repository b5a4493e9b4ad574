//! Capabilities that the sources use. They are compared with `plugin.toml` before the tools of a language run, because
//! these report only that a module or a symbol is missing.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use plugin_manifest::Capability;

use crate::project::ProjectFolder;

/// A place in the sources that uses a capability.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CapabilityUse {
    pub(super) capability: Capability,
    pub(super) file: PathBuf,
    /// Counted from 1.
    pub(super) line: usize,
}

/// Checks that `plugin.toml` asks for the capabilities that the sources use.
///
/// # Errors
/// It does not; the error names the first place and the line to add.
pub(super) fn check(project: &ProjectFolder, uses: Vec<CapabilityUse>) -> Result<()> {
    let needs = &project.project.manifest.capabilities;
    let is_declared = |used: &CapabilityUse| needs.iter().any(|need| need.name == used.capability);
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

/// Returns the capability with the interface `platform:supervisor/NAME`; the words of `name` may also be separated by
/// underscores. Interfaces that need no capability have none.
pub(super) fn find_capability(name: &str) -> Option<Capability> {
    let interface = format!("platform:supervisor/{}", name.replace('_', "-"));
    let mut all = Capability::all().iter().copied();
    all.find(|capability| capability.imports().contains(&interface.as_str()))
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

/// Returns the source without its comments, which are those of C, in the same lines. A file that cannot be read is
/// empty: the language's own tools say what is wrong with it.
pub(super) fn code_of(file: &Path) -> String {
    without_comments(&std::fs::read_to_string(file).unwrap_or_default())
}

fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // The quotation mark that ends the present text.
    let mut end = None;
    while let Some(char) = chars.next() {
        if let Some(mark) = end {
            code.push(char);
            // Only a text between backticks has several lines. A quotation mark in a regular expression begins none.
            if char == mark || (char == '\n' && mark != '`') {
                end = None;
            } else if char == '\\' {
                code.extend(chars.next());
            }
            continue;
        }
        match (char, chars.peek()) {
            ('/', Some('/')) => while chars.next_if(|next| *next != '\n').is_some() {},
            ('/', Some('*')) => {
                let mut before = ' ';
                chars.next();
                for inner in chars.by_ref() {
                    if inner == '\n' {
                        code.push(inner);
                    }
                    if (before, inner) == ('*', '/') {
                        break;
                    }
                    before = inner;
                }
                code.push(' ');
            }
            ('"' | '\'' | '`', _) => {
                end = Some(char);
                code.push(char);
            }
            _ => code.push(char),
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
    }

    #[test]
    fn comments_go_and_lines_and_texts_stay() {
        for (text, expected) in [
            ("a // b\nc", "a \nc"),
            ("a /* b\n * c */ d", "a \n  d"),
            ("a /*/ b */ c", "a   c"),
            ("\"// a\" // b", "\"// a\" "),
            (r#""\"// a" // b"#, r#""\"// a" "#),
            ("`a\n// b` // c", "`a\n// b` "),
            ("/['\"]/;\n// a", "/['\"]/;\n"),
            ("a / b /", "a / b /"),
            ("/* a", " "),
        ] {
            assert_eq!(without_comments(text), expected, "{text}");
        }
    }
}
