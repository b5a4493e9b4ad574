//! Errors in requests, and their places.

use std::fmt;

/// The longest request, in bytes of path and query.
pub const MAX_LENGTH: usize = 64 << 10;
/// The maximum nesting depth of parentheses, functions, lambdas and expansions.
pub const MAX_DEPTH: usize = 32;
/// The maximum number of values in one list (`in (…)`), conditions in one chain (`… or …`), parts of one `$orderby`,
/// `$select` or `$expand`, and parameters (`@name`) of one request.
pub const MAX_ITEMS: usize = 1000;
/// The maximum number of links in one path, in the address, in a condition or in an order.
pub const MAX_LINKS: usize = 16;
/// The maximum number of arithmetic operators (`add`, `mul`, …) in one option of the query. Each nests what precedes it
/// one level deeper, so this bounds the depth as well.
pub const MAX_CALCULATIONS: usize = 64;

/// A request that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// The byte of `path?query` at which the request stops being valid.
    pub at: usize,
    /// What is wrong there, for people.
    pub message: String,
}

impl ParseError {
    pub(crate) fn too_long(length: usize) -> Self {
        let message = format!("the request has {length} bytes, more than {MAX_LENGTH}");
        ParseError::new(MAX_LENGTH, message)
    }

    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        let message = message.into();
        ParseError { at, message }
    }

    /// Creates the error for a place where `what` should stand.
    pub(crate) fn expected(at: usize, what: &str) -> Self {
        ParseError::new(at, format!("expected {what}"))
    }

    /// Adds the place, as it reads in the text of the request ([`Request::text`](crate::Request::text)), to the
    /// message. The text is not yet known where an error is found.
    #[must_use]
    pub fn within(self, text: &str) -> Self {
        let ParseError { at, message } = self;
        let message = format!("{message} {}", ErrorPlace { text, at });
        ParseError { at, message }
    }
}

struct ErrorPlace<'a> {
    text: &'a str,
    at: usize,
}

impl fmt::Display for ErrorPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 24;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let shown: String = rest.chars().take(SHOWN).collect();
        let more = if shown.len() < rest.len() { "…" } else { "" };
        if rest.is_empty() {
            write!(f, "at character {}, the end", self.at)
        } else {
            write!(f, "at character {}: `{shown}{more}`", self.at)
        }
    }
}
