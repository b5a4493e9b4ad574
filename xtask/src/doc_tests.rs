//! The examples in doc comments, which rustdoc runs as tests.
//!
//! Cargo builds the crates for them without the dependencies of other tests, so with other features, and nearly all of
//! the workspace a second time. Only the few crates with examples are worth that.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};

use crate::cargo::repository;
use crate::text_files::{self, TextFile};

/// The words after a fence with which rustdoc still takes a block of code for a test.
const TESTED: [&str; 5] = [
    "compile_fail",
    "no_run",
    "rust",
    "should_panic",
    "standalone_crate",
];

/// Returns the packages whose libraries have examples.
///
/// # Errors
/// If a source or a manifest cannot be read.
pub(crate) fn packages() -> Result<BTreeSet<String>> {
    let files = text_files::all()?;
    let folders: BTreeSet<&str> = files.iter().filter_map(crate_with_example).collect();
    folders.into_iter().map(package_in).collect()
}

/// Returns the folder of the crate if the file is one of its sources and has an example.
fn crate_with_example(file: &TextFile) -> Option<&str> {
    let (folder, source) = file.path.split_once("/src/")?;
    (source.ends_with(".rs") && has_example(&file.text)).then_some(folder)
}

/// Returns the name of the package in a folder of the repository.
fn package_in(folder: &str) -> Result<String> {
    let path = repository().join(folder).join("Cargo.toml");
    let read = || -> Result<String> {
        let manifest: toml::Table = fs::read_to_string(&path)?.parse()?;
        let name = manifest
            .get("package")
            .and_then(|package| package.get("name"));
        let name = name.and_then(toml::Value::as_str);
        Ok(name.context("it has no name")?.to_owned())
    };
    read().with_context(|| format!("failed to read `{}`", path.display()))
}

/// Returns whether a doc comment in the source contains a block of code that is a test.
fn has_example(source: &str) -> bool {
    let comments = source.lines().map(str::trim_start);
    let comments = comments.filter_map(|line| {
        line.strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
    });
    let mut is_open = false;
    for line in comments {
        if let Some(words) = line.trim().strip_prefix("```") {
            if !is_open && is_tested(words) {
                return true;
            }
            is_open = !is_open;
        }
    }
    false
}

/// Returns whether the block is a test, by the words after its fence.
fn is_tested(words: &str) -> bool {
    let mut words = words.split([',', ' ']).filter(|word| !word.is_empty());
    words.all(|word| TESTED.contains(&word) || word.starts_with("edition"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_blocks_of_rust_in_doc_comments() {
        for (source, expected) in [
            ("/// ```\n/// a();\n/// ```\n", true),
            ("//! ```rust,no_run\n//! a();\n//! ```\n", true),
            ("    /// ```compile_fail\n", true),
            ("/// ```edition2024\n", true),
            ("/// ```text\n/// a\n/// ```\n", false),
            (
                "/// ```toml\n/// a = 1\n/// ```\n/// ```json\n/// 1\n/// ```\n",
                false,
            ),
            (
                "/// ```text\n/// a\n/// ```\n/// ```\n/// a();\n/// ```\n",
                true,
            ),
            ("// ```\n// a();\n// ```\n", false),
            ("let text = \"```\";\n", false),
        ] {
            assert_eq!(has_example(source), expected, "{source}");
        }
    }

    #[test]
    fn packages_with_examples_are_found_by_their_names() {
        let packages = packages().unwrap();
        assert!(packages.contains("supervisor-sdk"), "{packages:?}");
        assert!(!packages.contains("xtask"), "{packages:?}");
    }
}
