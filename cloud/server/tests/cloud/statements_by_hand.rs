//! Statements that the server writes by hand and that check nobody's rights: docs/security.md lists their purposes, and
//! how many places there are, so that reviewers see a new one. `UPDATE_DOCS=1` writes the numbers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use data::SystemPurpose;

const NAMED: &str = "SystemPurpose::";

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> PathBuf {
    here().join("../../docs/security.md")
}

/// Collects the source files of the program itself, without tests.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("a text");
            let own = text.split("#[cfg(test)]").next().unwrap_or_default();
            found.push((path, own.to_owned()));
        }
    }
}

/// Counts the places that name each purpose.
fn counted() -> BTreeMap<String, usize> {
    let mut files = Vec::new();
    for part in ["core", "dashboard", "server"] {
        sources(&here().join("..").join(part).join("src"), &mut files);
    }
    assert!(files.len() > 100, "the sources are somewhere else");
    let mut counts: BTreeMap<String, usize> = SystemPurpose::ALL
        .iter()
        .map(|(name, _)| ((*name).to_owned(), 0))
        .collect();
    for (path, text) in &files {
        // A purpose under another name could not be counted.
        for hidden in [
            "SystemPurpose as ",
            "SystemPurpose::*",
            "SystemPurpose::{",
            "testing::",
        ] {
            assert!(!text.contains(hidden), "{} has `{hidden}`", path.display());
        }
        // Only credentials determine the identity of a caller.
        for made in ["Caller::Holder", "Caller::LimitedKey"] {
            let is_there = text.contains(made) && !path.ends_with("credential.rs");
            assert!(!is_there, "{} makes a `{made}`", path.display());
        }
        for (at, _) in text.match_indices(NAMED) {
            let rest = &text[at + NAMED.len()..];
            let name = rest.split(|it: char| !it.is_alphanumeric()).next();
            let count = counts.get_mut(name.unwrap_or_default());
            *count.unwrap_or_else(|| panic!("{}: {name:?}", path.display())) += 1;
        }
    }
    counts
}

/// Returns the row of a purpose in the table, and its number of places.
fn row<'a>(page: &'a str, purpose: &str) -> (&'a str, usize) {
    let begin = format!("| `{purpose}` |");
    let row = page.lines().find(|line| line.starts_with(&begin));
    let row = row.unwrap_or_else(|| panic!("docs/security.md does not say what `{purpose}` is"));
    let places = row.trim_end_matches('|').rsplit('|').next();
    let places = places.and_then(|number| number.trim().parse().ok());
    (
        row,
        places.unwrap_or_else(|| panic!("no number of places: {row}")),
    )
}

#[test]
fn every_statement_that_asks_for_nobodys_right_is_counted_in_the_docs() {
    let mut text = fs::read_to_string(page()).expect("the page");
    let mut wrong = Vec::new();
    for (purpose, places) in counted() {
        let (row, written) = row(&text, &purpose);
        if written == places {
            continue;
        }
        let (before, _) = row.trim_end_matches('|').rsplit_once('|').expect("cells");
        let (row, right) = (row.to_owned(), format!("{before}| {places} |"));
        wrong.push(format!(
            "`{purpose}` has {places} places, and the page says {written}"
        ));
        text = text.replace(&row, &right);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(page(), text).expect("the page");
        return;
    }
    assert!(
        wrong.is_empty(),
        "{}. Does each new place answer nobody with rows that they have no right to? Then UPDATE_DOCS=1 writes the \
         numbers; otherwise make the statement from a `RowRight`, or by `data::query`.",
        wrong.join("; ")
    );
}
