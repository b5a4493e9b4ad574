//! The text files of the repository, for checks that read all of them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cargo::repository;

/// The extensions of the files that are read in every folder.
const EXTENSIONS: [&str; 10] = [
    "css", "html", "js", "md", "rs", "sh", "sql", "toml", "wat", "wit",
];
/// The extensions of the files that are read in [`PUBLISHED_FOLDERS`] only: elsewhere such files are inputs and
/// expected outputs of tests.
const PUBLISHED_EXTENSIONS: [&str; 7] = ["c", "go", "h", "mjs", "py", "ts", "txt"];
/// The folders with the sources of the SDKs, the examples and the documentation.
const PUBLISHED_FOLDERS: [&str; 3] = ["docs/", "examples/", "sdk/"];
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
        let path = format!("{prefix}{name}");
        if is_skipped(&path, &name) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && is_read(&path) {
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

/// Returns whether a file or folder is not part of the repository: a hidden one, the output of cargo, packages of
/// others, or what the build of a plugin in another language generates.
fn is_skipped(path: &str, name: &str) -> bool {
    name.starts_with('.')
        || matches!(name, "node_modules" | "target")
        || (name == "build" && path.starts_with("examples/"))
}

/// Returns whether a file is read, by its path.
fn is_read(path: &str) -> bool {
    let Some((_, extension)) = path.rsplit_once('.') else {
        return false;
    };
    let is_published = PUBLISHED_FOLDERS
        .iter()
        .any(|folder| path.starts_with(folder));
    EXTENSIONS.contains(&extension) || (is_published && PUBLISHED_EXTENSIONS.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_languages_are_read_where_they_are_published() {
        for (path, expected) in [
            ("README.md", true),
            ("host/model/src/lib.rs", true),
            ("cloud/dashboard/src/assets/log.js", true),
            ("docs/pictures/dashboard.txt", true),
            ("examples/hello-python/src/plugin.py", true),
            ("examples/hello-typescript/src/plugin.ts", true),
            ("sdk/c/events.c", true),
            ("sdk/c/events.h", true),
            ("sdk/cli/src/languages/javascript/bundle.mjs", true),
            ("sdk/go/events/events.go", true),
            ("sdk/javascript/types/index.d.ts", true),
            ("cloud/odata/tests/requests.txt", false),
            ("tests/tests/device/unit_filter.py", false),
            ("sdks/a.py", false),
            ("LICENSE", false),
            ("docs/txt", false),
            ("sdk/cli/templates/go/go.mod.template", false),
        ] {
            assert_eq!(is_read(path), expected, "{path}");
        }
    }

    #[test]
    fn generated_files_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [
            ".git/a.md",
            "docs/a.txt",
            "examples/hello/build/sdk/a.py",
            "examples/hello/src/a.py",
            "examples/hello/src/build.mjs",
            "sdk/go/a.go",
            "sdk/javascript/node_modules/a/a.js",
            "sdk/javascript/src/a.js",
            "target/a.rs",
            "tests/a.txt",
        ];
        for path in paths {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "text").unwrap();
        }
        let mut files = Vec::new();
        collect(folder.path(), "", &mut files).unwrap();
        let mut read: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        read.sort_unstable();
        assert_eq!(
            read,
            [
                "docs/a.txt",
                "examples/hello/src/a.py",
                "examples/hello/src/build.mjs",
                "sdk/go/a.go",
                "sdk/javascript/src/a.js",
            ]
        );
    }
}
