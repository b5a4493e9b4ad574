//! Citations of the contract: each one in the repository has to name an existing rule.
//!
//! The rules are in the pages of `docs/spec`, each with an anchor, `<a id="locks-files"></a>`; code cites them by page
//! and anchor. [`check`] reads the repository, and [`problems`] checks the texts only.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::text_files::{TextFile, numbered};

/// The folder of the contract's pages.
const PAGES: &str = "docs/spec/";
/// The text with which a page defines an anchor.
const DEFINITION: &str = "<a id=\"";
/// The tests of this module, whose citations are wrong on purpose.
const TESTS: &str = "xtask/src/citations/tests.rs";
/// Files that can have citations in the obsolete form.
const SOURCES: [&str; 5] = [".rs", ".sql", ".toml", ".wat", ".wit"];

/// Fails if a citation in the repository leads nowhere, has the obsolete form, or is ambiguous because its anchor is
/// defined twice.
pub(crate) fn check(mut files: Vec<TextFile>) -> Result<()> {
    files.retain(|file| file.path != TESTS);
    let problems = problems(&files);
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "citations of {PAGES} are wrong:\n{}\ncite a rule as `{PAGES}<page>.md#<anchor>`, and define it there as \
         `{DEFINITION}<anchor>\"></a>`",
        problems.join("\n")
    )
}

/// Returns every problem, as `path:line: sentence`, in the order of the files.
fn problems(files: &[TextFile]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut pages: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_page(&file.path)) {
        let anchors = pages.entry(file.path.as_str()).or_default();
        for (line, anchor) in definitions(&file.text) {
            if !anchors.insert(anchor) {
                problems.push(problem(
                    file,
                    line,
                    &format!("defines `{anchor}` a second time"),
                ));
            }
        }
    }
    for file in files {
        if is_page(&file.path) {
            links(file, files, &mut problems);
            continue;
        }
        for (line, page, anchor) in citations(&file.text) {
            match (pages.get(page), anchor) {
                (None, _) => {
                    let sentence = format!("cites `{page}`, which does not exist");
                    problems.push(problem(file, line, &sentence));
                }
                (Some(anchors), Some(anchor)) if !anchors.contains(anchor) => {
                    let sentence =
                        format!("cites `{page}#{anchor}`, which that page does not define");
                    problems.push(problem(file, line, &sentence));
                }
                // Prose may point to a page; a comment must cite a rule of it.
                (Some(_), None) if file.path.ends_with(".rs") => {
                    let sentence = format!("cites `{page}` without an anchor");
                    problems.push(problem(file, line, &sentence));
                }
                _ => {}
            }
        }
        if SOURCES.iter().any(|ending| file.path.ends_with(ending)) {
            for (line, shown) in old_citations(&file.text) {
                let sentence = format!("cites a page that is not here: `{shown}`");
                problems.push(problem(file, line, &sentence));
            }
        }
    }
    problems
}

fn problem(file: &TextFile, line: usize, sentence: &str) -> String {
    format!("{}:{line}: {sentence}", file.path)
}

fn is_page(path: &str) -> bool {
    path.starts_with(PAGES) && path.ends_with(".md")
}

/// Returns the anchors that a page defines, with their lines.
fn definitions(text: &str) -> impl Iterator<Item = (usize, &str)> {
    numbered(text).flat_map(|(line, text)| {
        text.split(DEFINITION)
            .skip(1)
            .filter_map(move |rest| rest.split_once('"').map(|(anchor, _)| (line, anchor)))
    })
}

/// Returns the citations of a text: line, page and anchor.
fn citations(text: &str) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
    numbered(text).flat_map(|(line, text)| {
        let starts = text.match_indices(PAGES).map(|(start, _)| start);
        starts.filter_map(move |start| {
            let rest = &text[start..];
            let name = PAGES.len() + length(&rest[PAGES.len()..], |c| c == '/' || is_of_anchor(c));
            let page = rest
                .get(..name + ".md".len())
                .filter(|page| page.ends_with(".md"))?;
            let anchor = rest[page.len()..].strip_prefix('#');
            let anchor = anchor.map(|anchor| &anchor[..length(anchor, is_of_anchor)]);
            Some((line, page, anchor))
        })
    })
}

/// Checks links from a page of the contract to a place in a page: to an anchor, or to a heading, with the name that
/// Markdown renderers give it.
fn links(file: &TextFile, files: &[TextFile], problems: &mut Vec<String>) {
    for (line, text) in numbered(&file.text) {
        for rest in text.split("](").skip(1) {
            let target = rest.split_once(')').map(|(target, _)| target);
            let Some((target, (page, place))) =
                target.and_then(|target| Some((target, target.split_once('#')?)))
            else {
                continue;
            };
            let page = resolved(&file.path, page);
            let page = files.iter().find(|file| file.path == page);
            let is_there = page.is_some_and(|page| {
                definitions(&page.text).any(|(_, anchor)| anchor == place)
                    || headings(&page.text).any(|heading| heading == place)
            });
            if !is_there && !target.contains("://") {
                let sentence = format!("links to `{target}`, which is not there");
                problems.push(problem(file, line, &sentence));
            }
        }
    }
}

/// Returns the path that a link in a page leads to.
fn resolved(from: &str, link: &str) -> String {
    if link.is_empty() {
        return from.to_owned();
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the headings with the names that links use.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let letters = line.trim_start_matches('#').trim().chars();
            letters
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| {
                    if c == ' ' {
                        '-'
                    } else {
                        c.to_ascii_lowercase()
                    }
                })
                .collect()
        })
}

/// Returns citations by chapter and number, which comments used before the contract was part of the repository. They
/// may span lines, so the text is read word by word.
fn old_citations(text: &str) -> Vec<(usize, String)> {
    let words: Vec<(usize, &str, bool)> = numbered(text)
        .flat_map(|(line, text)| {
            let (code, comment) = split_comment(text);
            let code = code.split_whitespace().map(|word| (word, false));
            let comment = comment.split_whitespace().map(|word| (word, true));
            code.chain(comment)
                .filter(|(word, _)| !matches!(*word, "//" | "///" | "//!" | "#" | "--" | ";;"))
                .map(move |(word, in_comment)| (line, word, in_comment))
        })
        .collect();
    let mut matches = Vec::new();
    for (index, (line, word, in_comment)) in words.iter().enumerate() {
        let next = |ahead: usize| words.get(index + ahead).map_or("", |(_, word, _)| *word);
        let subject = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        let is_old = match subject.to_ascii_lowercase().as_str() {
            "device" | "cloud" => {
                let begins = |word: &str, with: fn(char) -> bool| word.starts_with(with);
                match next(1) {
                    "behaviour" => begins(next(2), |c| c.is_ascii_digit()) || next(2) == "section",
                    "behaviour," => true,
                    "API," => begins(next(2), |c| c == '"') || next(2).starts_with("Limits"),
                    _ => false,
                }
            }
            "row" => next(1) == "rules" && next(2).starts_with(|c: char| c.is_ascii_digit()),
            "section" => word.starts_with('(') && next(1).starts_with(|c: char| c.is_ascii_digit()),
            _ => *in_comment && is_bare_number(word),
        };
        if is_old {
            let excerpt = if is_bare_number(word) {
                (*word).to_owned()
            } else {
                format!("{word} {} {}", next(1), next(2))
                    .trim_end()
                    .to_owned()
            };
            matches.push((*line, excerpt));
        }
    }
    matches
}

/// Splits a line into code and the comment at its end.
fn split_comment(line: &str) -> (&str, &str) {
    if line.trim_start().starts_with("//") {
        ("", line)
    } else {
        line.split_once(" // ").unwrap_or((line, ""))
    }
}

/// Recognizes `(4.6)`, with or without punctuation after it.
fn is_bare_number(word: &str) -> bool {
    let inner = word
        .strip_prefix('(')
        .and_then(|word| word.split_once(')'))
        .filter(|(_, behind)| behind.chars().all(|c| c.is_ascii_punctuation()));
    let parts = inner.and_then(|(inner, _)| inner.split_once('.'));
    let is_number = |text: &str| {
        (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    parts.is_some_and(|(chapter, part)| is_number(chapter) && is_number(part))
}

fn is_of_anchor(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

/// Returns the length in bytes of the beginning of `text` whose characters all satisfy `fits`.
fn length(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
