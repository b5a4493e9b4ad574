//! Phrases that texts and comments must not contain (docs/CONTRIBUTING.md, "Prose"): word-for-word translations that a
//! reader stumbles over.
//!
//! [`check`] knows those that were most common here, and what to write instead; it cannot know them all.

use anyhow::{Result, bail};

use crate::text_files::{TextFile, numbered};

/// A phrase in lower case, and what to write in its place.
const PHRASES: [(&str, &str); 42] = [
    ("anew", "again"),
    ("are said", "are stated"),
    ("are to be", "must be, should be, or will be"),
    ("are to run", "should run, or will run"),
    ("are told", "receive, or are notified"),
    ("as it says", "claimed, or according to it"),
    ("becomes of it", "the result"),
    ("breaks off", "ends early"),
    ("broke off", "ended early, or ended unexpectedly"),
    ("broken off", "interrupted"),
    ("finds out by itself", "computes"),
    ("goes before", "takes precedence over"),
    ("is like this", "is as follows"),
    ("is not right", "is invalid"),
    ("is not to run", "should not run"),
    ("is said", "is stated, or is in"),
    ("is there already", "exists already"),
    ("is to be", "must be, should be, or will be"),
    ("is to join", "should join"),
    ("is to run", "should run, or will run"),
    ("is to stop", "should stop, or will stop"),
    ("is to trust", "should trust"),
    ("is told", "receives, or is notified"),
    ("it came to", "the results"),
    ("known weaknesses", "known vulnerabilities"),
    ("nothing came", "no response"),
    ("object a line", "one object per line"),
    ("of it away", "removes it, or removes all of it"),
    ("owner alone", "only its owner"),
    ("owner's alone", "only its owner"),
    ("second versions", "duplicate versions"),
    ("serves on", "stays in use"),
    ("stays with you", "keep it secret"),
    ("tells of", "reports, or describes"),
    ("was said", "was stated, or was reported"),
    ("was told", "received, or was notified"),
    ("were said", "were stated, or were reported"),
    ("were told", "received, or were notified"),
    ("which boot this is", "the boot id"),
    ("who asks", "the caller"),
    ("whoever asks", "the caller"),
    ("withdrawn versions", "yanked versions"),
];
/// The file that lists the phrases.
const THIS: &str = "xtask/src/phrases.rs";

/// Fails if a text of the repository contains one of these phrases.
pub(crate) fn check(files: &[TextFile]) -> Result<()> {
    let problems: Vec<String> = files.iter().flat_map(problems).collect();
    if problems.is_empty() {
        return Ok(());
    }
    bail!("texts are not plain English:\n{}", problems.join("\n"))
}

/// Returns the phrases of one file that need other words, as `path:line: sentence`. Files of others are not read. In
/// documentation, the names of tests are read as the sentences that they are.
fn problems(file: &TextFile) -> Vec<String> {
    if file.path == THIS || file.path.contains("/vendor/") {
        return Vec::new();
    }
    let problems = numbered(&file.text).flat_map(|(line, text)| {
        let mut text = text.to_ascii_lowercase();
        if file.path.ends_with(".md") {
            text = text.replace('_', " ");
        }
        let found = PHRASES
            .into_iter()
            .filter(move |(phrase, _)| contains(&text, phrase));
        found.map(move |(phrase, instead)| {
            let path = &file.path;
            format!("{path}:{line}: `{phrase}`; write for example `{instead}`")
        })
    });
    problems.collect()
}

/// Returns whether a line contains a phrase as whole words.
fn contains(line: &str, phrase: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(phrase).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + phrase.len()..].chars().next();
        !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_the_place_the_phrase_and_other_words() {
        let file = |path: &str| TextFile {
            path: path.to_owned(),
            text: "Fine.\n// It IS TOLD so, and made anew.\n".to_owned(),
        };
        assert_eq!(
            problems(&file("host/a.rs")),
            [
                "host/a.rs:2: `anew`; write for example `again`",
                "host/a.rs:2: `is told`; write for example `receives, or is notified`",
            ]
        );
        assert_eq!(problems(&file("sdk/go/events/events.go")).len(), 2);
        assert!(problems(&file("cloud/vendor/a.js")).is_empty());
        let names_a_test = |path: &str| TextFile {
            path: path.to_owned(),
            text: "It is so (`a_device_is_told_so`).".to_owned(),
        };
        assert_eq!(problems(&names_a_test("docs/a.md")).len(), 1);
        assert!(problems(&names_a_test("host/a.rs")).is_empty());
        assert!(check(&[file("host/a.rs")]).is_err());
    }

    #[test]
    fn only_whole_words_count() {
        for (line, expected) in [
            ("it is told", true),
            ("(is told)", true),
            ("this told", false),
            ("is_told", false),
            ("is toldst", false),
            ("manew", false),
            ("anew_value", false),
            ("what is to be kept", true),
            ("what this to be kept", false),
        ] {
            let found = PHRASES.iter().any(|(phrase, _)| contains(line, phrase));
            assert_eq!(found, expected, "{line}");
        }
    }
}
