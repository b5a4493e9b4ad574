//! A file of `components/` or `callers/`: its comment, taken apart, and what stands below it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::repeats::written_out;

/// The keys in the comment of a file, as `key: value`.
///
/// For both kinds:
/// - `answer: STATUS TEXT`: the answer, with TEXT somewhere in it; of several such lines each is allowed;
/// - `log: TEXT`: is somewhere in the log during the attack; `absent: TEXT`: is neither there nor in an answer;
/// - `held: WHY`: the attempt has no effect, and nobody has to be named;
/// - `at-once: N`: this many callers at the same time.
///
/// For components: see `component.rs` and `plugin_folder.rs`.
const KEYS: [&str; 18] = [
    "answer",
    "log",
    "absent",
    "held",
    "at-once", // of components
    "refused",
    "world",
    "limits",
    "manifest",
    "policy",
    "grants",
    "body",
    "reader",
    "cut",
    "noise",
    "file",
    "signature",
    "section",
];

/// One attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attack {
    /// The file's name without its extension.
    pub name: String,
    /// What it tries.
    pub sentence: String,
    /// The other lines of its comment.
    directives: Vec<(String, String)>,
    /// The text below the comment.
    pub text: String,
}

impl Attack {
    /// Parses a file whose comment lines begin with `mark`.
    ///
    /// # Errors
    /// If it does not say what it tries, or has an unknown key.
    pub fn parse(name: &str, content: &str, mark: &str) -> Result<Self> {
        let mut sentence: Vec<&str> = Vec::new();
        let mut directives: Vec<(String, String)> = Vec::new();
        let mut lines = content.lines();
        let mut text = String::new();
        for line in lines.by_ref() {
            let Some(comment) = line.strip_prefix(mark) else {
                text = format!("{line}\n");
                break;
            };
            let comment = comment.trim();
            let pair = comment
                .split_once(':')
                .map(|(key, value)| (key, value.trim()));
            match pair {
                Some((key, value)) if KEYS.contains(&key) => {
                    directives.push((key.to_owned(), written_out(value)?));
                }
                _ if directives.is_empty() => sentence.push(comment),
                _ => bail!("`{comment}` has to be one of {}", KEYS.join(", ")),
            }
        }
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        let sentence = sentence.join(" ");
        if sentence.len() < 20 || !sentence.ends_with('.') {
            bail!("it has to begin with a sentence on what it tries, and begins with `{sentence}`");
        }
        Ok(Attack {
            name: name.to_owned(),
            sentence,
            directives,
            text,
        })
    }

    /// Returns all values of a key.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let of_key =
            move |(other, value): &'a (String, String)| (other == key).then_some(value.as_str());
        self.directives.iter().filter_map(of_key)
    }

    /// Returns the first value of a key.
    #[must_use]
    pub fn first(&self, key: &str) -> Option<&str> {
        let mut directives = self.directives.iter();
        let found = directives.find(|(other, _)| other == key);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the number of a key; `default` if the key is missing.
    ///
    /// # Errors
    /// If its value is not a number.
    pub fn number(&self, key: &str, default: usize) -> Result<usize> {
        let Some(text) = self.first(key) else {
            return Ok(default);
        };
        text.parse().with_context(|| format!("`{key}: {text}`"))
    }
}

/// Reads all attacks of a folder, by name: files that end with `.ENDING`. If `HOSTILE` is set in the environment, only
/// the one with that name.
///
/// # Errors
/// If a file cannot be read.
pub fn read_all(folder: &Path, ending: &str, mark: &str) -> Result<Vec<Attack>> {
    let selected = std::env::var("HOSTILE").ok();
    let mut attacks = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let (stem, end) = (path.file_stem(), path.extension());
        let (Some(stem), Some(end)) = (stem.and_then(|s| s.to_str()), end) else {
            bail!("`{}` is no attack", path.display());
        };
        if end != ending {
            bail!("`{}` does not end with `.{ending}`", path.display());
        }
        if selected.as_ref().is_some_and(|selected| selected != stem) {
            continue;
        }
        let content = fs::read_to_string(&path)?;
        let attack = Attack::parse(stem, &content, mark);
        attacks.push(attack.with_context(|| format!("`{}`", path.display()))?);
    }
    attacks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(attacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_it_tries_and_then_what_has_to_become_of_it() -> Result<()> {
        let file = ";; Loops for ever: nobody\n;; gets a turn.\n;; answer: 504 `spin` used\n;; answer: 503\n\n(func)\n";
        let attack = Attack::parse("spin", file, ";;")?;
        assert_eq!(attack.sentence, "Loops for ever: nobody gets a turn.");
        assert_eq!(
            attack.all("answer").collect::<Vec<_>>(),
            ["504 `spin` used", "503"]
        );
        assert_eq!(attack.text, "\n(func)\n");
        assert_eq!(attack.number("at-once", 3)?, 3);
        Ok(())
    }

    #[test]
    fn a_file_without_a_sentence_or_with_an_unknown_word_is_none() {
        for file in [
            "(func)",
            ";; Loops\n(func)",
            ";; Loops for ever and ever.\n;; answer: 504\n;; anwser: 504\n",
        ] {
            assert!(Attack::parse("x", file, ";;").is_err(), "{file}");
        }
    }
}
