//! The examples in doc comments, which rustdoc runs as tests.
//!
//! It reads a whole crate to find none. So the few crates with examples are the only ones in whose manifests they are
//! not turned off, and cargo can be asked for the examples of the same packages, with the same features, as for all
//! other tests: it then finds every dependency built.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::text_files::TextFile;

/// The words after a fence with which rustdoc still takes a block of code for a test.
const TESTED: [&str; 5] = [
    "compile_fail",
    "no_run",
    "rust",
    "should_panic",
    "standalone_crate",
];

/// Checks that each library says in its manifest whether rustdoc has examples to run there.
///
/// # Errors
/// The first manifest that says otherwise, or cannot be parsed.
pub(crate) fn check(files: &[TextFile]) -> Result<()> {
    let with_examples: BTreeSet<&str> = files.iter().filter_map(crate_with_example).collect();
    for file in files {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        let source = format!("{folder}/src/lib.rs");
        if !files.iter().any(|file| file.path == source) {
            continue;
        }
        let manifest: Manifest = toml::from_str(&file.text)
            .with_context(|| format!("failed to read `{}`", file.path))?;
        // Cargo's default.
        let doctest = manifest.lib.and_then(|library| library.doctest);
        match (doctest.unwrap_or(true), with_examples.contains(folder)) {
            (true, false) => bail!(
                "`{}` has no examples in doc comments: write `doctest = false` under `[lib]`, so that nobody waits for \
                 rustdoc",
                file.path
            ),
            (false, true) => bail!(
                "`{}` has `doctest = false`, but there are examples in the crate's doc comments: remove it",
                file.path
            ),
            _ => {}
        }
    }
    Ok(())
}

/// The part of a crate's manifest that says what rustdoc runs.
#[derive(Deserialize)]
struct Manifest {
    lib: Option<Library>,
}

#[derive(Deserialize)]
struct Library {
    doctest: Option<bool>,
}

/// Returns the folder of the crate if the file is one of its sources and has an example.
fn crate_with_example(file: &TextFile) -> Option<&str> {
    let (folder, source) = file.path.split_once("/src/")?;
    (source.ends_with(".rs") && has_example(&file.text)).then_some(folder)
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
    fn a_manifest_says_whether_its_library_has_examples() {
        let library = "/// ```\n/// a();\n/// ```\n";
        let off = "[package]\n[lib]\ndoctest = false\n";
        for (manifest, source, expected) in [
            ("[package]\n", library, None),
            (off, "", None),
            ("[package]\n", "", Some("has no examples")),
            (off, library, Some("remove it")),
        ] {
            let files = [("a/Cargo.toml", manifest), ("a/src/lib.rs", source)];
            let files = files.map(|(path, text)| TextFile {
                path: path.to_owned(),
                text: text.to_owned(),
            });
            let error = check(&files).err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(error, None, "{manifest}"),
                Some(part) => assert!(error.is_some_and(|e| e.contains(part)), "{manifest}"),
            }
        }
    }
}
