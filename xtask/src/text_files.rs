//! The text files of the repository, for checks that read all of them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cargo::repository;

/// The extensions of the files that are read.
const EXTENSIONS: [&str; 10] = [
    "css", "html", "js", "md", "rs", "sh", "sql", "toml", "wat", "wit",
];
/// A file of the repository.
pub(crate) struct TextFile {
    /// Relative to the root of the repository, with slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns every text file of the repository.
pub(crate) fn all() -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    collect(&repository(), "", &mut files)?;
    Ok(files)
}

/// Returns the lines of a text with their numbers, from 1.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<TextFile>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("failed to list `{}`", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("failed to list `{}`", folder.display()))?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        // Hidden folders and cargo's output are not part of the repository.
        if name.starts_with('.') || name == "target" {
            continue;
        }
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && has_extension(&name) {
            let bytes =
                fs::read(entry.path()).with_context(|| format!("failed to read `{path}`"))?;
            // A sample that is deliberately not UTF-8 contains no citations.
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(TextFile { path, text });
            }
        }
    }
    Ok(())
}

fn has_extension(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}
