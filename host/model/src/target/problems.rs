//! Problems of a target state: the place, the value found there, and the expected one.

use std::fmt;

use serde_json::Value;

use crate::excerpt::cut;

/// The number of problems that are listed; further ones are only counted, so that a hostile state
/// cannot make an answer arbitrarily large.
const MAX_LISTED: usize = 100;

/// One error in a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The keys separated by dots, for example `local.apps.12.services.3.imageId`.
    pub path: String,
    /// The value as JSON, cut if it is long; absent if there is none.
    pub found: Option<String>,
    /// The expected value, with its article.
    pub expected: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem {
            path,
            found,
            expected,
        } = self;
        match found {
            Some(found) => write!(f, "`{path}`: expected {expected}, found `{found}`"),
            None => write!(f, "`{path}`: expected {expected}, but it is missing"),
        }
    }
}

/// The problems because of which a target state, or an app of it, was refused. Its text has
/// `Invalid target state.` as the first line, then one line for each problem
/// (docs/spec/device.md#target-invalid).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetErrors {
    problems: Vec<Problem>,
    unlisted: usize,
}

impl TargetErrors {
    /// Returns the first hundred problems; never empty.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Joins several values into one, with the same limit.
    pub(crate) fn joined(all: impl IntoIterator<Item = TargetErrors>) -> Option<TargetErrors> {
        let mut problems = Problems::default();
        for errors in all {
            problems.unlisted += errors.unlisted;
            errors
                .problems
                .into_iter()
                .for_each(|problem| problems.push(problem));
        }
        problems.into_result(()).err()
    }
}

impl fmt::Display for TargetErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invalid target state.")?;
        for problem in &self.problems {
            write!(f, "\n{problem}")?;
        }
        if self.unlisted > 0 {
            write!(f, "\nand {} more", self.unlisted)?;
        }
        Ok(())
    }
}

impl std::error::Error for TargetErrors {}

/// Collects problems during parsing.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    problems: Vec<Problem>,
    unlisted: usize,
}

impl Problems {
    pub(crate) fn expected(&mut self, path: &Path<'_>, found: &Value, expected: impl Into<String>) {
        self.note(path, Some(found), expected);
    }

    pub(crate) fn missing(&mut self, path: &Path<'_>, expected: impl Into<String>) {
        self.note(path, None, expected);
    }

    fn note(&mut self, path: &Path<'_>, found: Option<&Value>, expected: impl Into<String>) {
        if self.has_room() {
            self.push(Problem {
                path: path.to_string(),
                found: found.map(shown),
                expected: expected.into(),
            });
        }
    }

    pub(crate) fn into_result<T>(self, value: T) -> Result<T, TargetErrors> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        Err(TargetErrors {
            problems: self.problems,
            unlisted: self.unlisted,
        })
    }

    /// Counts the problem if it would not be listed, without the cost of formatting it.
    fn has_room(&mut self) -> bool {
        let room = self.problems.len() < MAX_LISTED;
        if !room {
            self.unlisted += 1;
        }
        room
    }

    fn push(&mut self, problem: Problem) {
        if self.has_room() {
            self.problems.push(problem);
        }
    }
}

/// The path of a value: a chain on the stack, formatted only for a problem.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    key: &'a str,
}

impl<'a> Path<'a> {
    pub(crate) fn root(key: &'a str) -> Self {
        Path { parent: None, key }
    }

    /// Returns the last of its keys.
    pub(crate) fn key(&self) -> &'a str {
        self.key
    }

    pub(crate) fn at(&'a self, key: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            key,
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        f.write_str(&cut(self.key))
    }
}

/// Formats a value for a problem. Containers are named, not written out: they can be of any size.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(entries) => format!("a map of {}", entries.len()),
        Value::String(text) => format!("\"{}\"", cut(text)),
        other => other.to_string(),
    }
}
