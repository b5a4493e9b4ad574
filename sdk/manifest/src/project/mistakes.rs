//! The reasons why a `plugin.toml` cannot be used, all of them at once, each with its place.

use std::collections::BTreeMap;
use std::fmt;

use toml::Spanned;

use crate::form_error::line_and_column;
use crate::{LimitError, Project, Route, WrittenLimits};

/// A reason why a `plugin.toml` cannot be used, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectError {
    /// Line and column, counted from 1; `None` if the problem is what is missing.
    place: Option<(usize, usize)>,
    message: String,
}

impl fmt::Display for ProjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Project::FILE)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl ProjectError {
    /// Creates the error about the place `offset` of a text.
    fn at(text: &str, offset: usize, message: impl fmt::Display) -> ProjectError {
        ProjectError {
            place: Some(line_and_column(text, offset)),
            message: message.to_string(),
        }
    }

    /// Creates the error about something whose place only its message names: the first text between backticks that
    /// begins a line, as keys do.
    fn about(text: &str, message: &str) -> ProjectError {
        let mut names = message.split('`').skip(1).step_by(2);
        let offset = names.find_map(|name| offset_of_key(text, name));
        ProjectError {
            place: offset.map(|offset| line_and_column(text, offset)),
            message: message.to_owned(),
        }
    }
}

/// All reasons why a `plugin.toml` cannot be used, in the order of the file: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectErrors(Vec<ProjectError>);

impl ProjectErrors {
    /// Returns the reasons.
    pub fn iter(&self) -> impl Iterator<Item = &ProjectError> {
        self.0.iter()
    }
}

/// Each in a line of its own.
impl fmt::Display for ProjectErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProjectErrors {}

/// Collects the mistakes in a text.
pub(super) struct Mistakes<'a> {
    text: &'a str,
    pub(super) errors: Vec<ProjectError>,
}

impl Mistakes<'_> {
    pub(super) fn new(text: &str) -> Mistakes<'_> {
        Mistakes {
            text,
            errors: Vec::new(),
        }
    }

    /// Adds one at the place `offset`.
    pub(super) fn add_at(&mut self, offset: usize, message: impl fmt::Display) {
        self.errors
            .push(ProjectError::at(self.text, offset, message));
    }

    /// Adds one whose place only its message names.
    pub(super) fn add(&mut self, message: &str) {
        self.errors.push(ProjectError::about(self.text, message));
    }

    /// Returns the value at the place `offset`, or adds the reason why it is not valid.
    pub(super) fn valid_at<T, E: fmt::Display>(
        &mut self,
        offset: usize,
        value: Result<T, E>,
    ) -> Option<T> {
        value.map_err(|error| self.add_at(offset, error)).ok()
    }

    /// Returns the routes and their handlers.
    pub(super) fn routes(
        &mut self,
        written: BTreeMap<Spanned<String>, Spanned<String>>,
    ) -> (Vec<Route>, Vec<String>) {
        let mut routes = Vec::new();
        let mut handlers = Vec::new();
        for (route, handler) in written {
            if handler.get_ref().trim().is_empty() {
                let message = format!(
                    "the route `{}` has no handler: name the function that answers it",
                    route.get_ref()
                );
                self.add_at(handler.span().start, message);
            }
            let parsed = Route::parse(route.get_ref());
            if let Some(route) = self.valid_at(route.span().start, parsed) {
                routes.push(route);
                handlers.push(handler.into_inner());
            }
        }
        (routes, handlers)
    }

    /// Returns the limits.
    pub(super) fn limits(
        &mut self,
        written: BTreeMap<Spanned<String>, Spanned<u32>>,
    ) -> WrittenLimits {
        let mut limits = WrittenLimits::default();
        for (key, value) in written {
            if let Err(error) = limits.set(key.get_ref(), *value.get_ref()) {
                let place = match error {
                    LimitError::Range { .. } => value.span().start,
                    LimitError::Unknown { .. } => key.span().start,
                };
                self.add_at(place, error);
            }
        }
        limits
    }

    /// Returns all of them in the order of the file; those without a place come last.
    pub(super) fn into_errors(mut self) -> ProjectErrors {
        let end = (usize::MAX, 0);
        self.errors.sort_by_key(|error| error.place.unwrap_or(end));
        ProjectErrors(self.errors)
    }
}

/// Returns the place of a key: of a bare one, one in quotation marks, or a table.
fn offset_of_key(text: &str, key: &str) -> Option<usize> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let written = line.trim_start();
        let after = ["[", "\"", "'", ""].iter().find_map(|opening| {
            let rest = written.strip_prefix(opening)?;
            rest.strip_prefix(key)
        });
        let ends = |rest: &str| {
            let next = rest.chars().next();
            next.is_none_or(|char| "]\"'.= \t".contains(char))
        };
        if !key.is_empty() && after.is_some_and(ends) {
            return Some(start + line.len() - written.len());
        }
        start += line.len();
    }
    None
}
