//! Why a request is not of the language, and where.

use std::fmt;

/// The longest request, in bytes of path and query.
pub const MAX_LENGTH: usize = 64 << 10;
/// How deep parentheses, functions, lambdas and expansions may stand in each other.
pub const MAX_DEPTH: usize = 32;
/// Values of one list (`in (…)`), conditions of one chain (`… or …`), parts of one `$orderby`, `$select` or
/// `$expand`, and parameters (`@name`) of one request.
pub const MAX_ITEMS: usize = 1000;
/// Links of one path, in the address, in a condition or in an order.
pub const MAX_LINKS: usize = 16;
/// Operators of calculations (`add`, `mul`, …) in one option of the query. Each puts what stands before it one
/// level deeper, so this bounds the depth as well.
pub const MAX_CALCULATIONS: usize = 64;

/// A request that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// The byte of `path?query` at which it stops to be a request.
    pub at: usize,
    /// For people: what is wrong there.
    pub message: String,
}

impl ParseError {
    /// What is wrong at a byte of `path?query`, for whoever finds out later what a name or a value means.
    #[must_use]
    pub fn pointing(path: &str, query: Option<&str>, at: usize, message: &str) -> Self {
        Fault::said(at, message).within(&whole(path, query))
    }

    pub(crate) fn too_long(length: usize) -> Self {
        ParseError {
            at: MAX_LENGTH,
            message: format!("the request has {length} bytes, more than {MAX_LENGTH}"),
        }
    }
}

/// The request in one piece, as places count.
pub(crate) fn whole(path: &str, query: Option<&str>) -> String {
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

/// The same before it is known what the whole request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) what: FaultKind,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// Something else should stand here.
    Expected(&'static str),
    /// A sentence.
    Said(String),
}

impl Fault {
    pub(crate) fn expected(at: usize, what: &'static str) -> Self {
        Fault {
            at,
            what: FaultKind::Expected(what),
        }
    }

    pub(crate) fn said(at: usize, what: impl Into<String>) -> Self {
        Fault {
            at,
            what: FaultKind::Said(what.into()),
        }
    }

    /// For people, with what stands there in `whole`.
    pub(crate) fn within(self, whole: &str) -> ParseError {
        let Fault { at, what } = self;
        let here = ErrorPlace { whole, at };
        let message = match what {
            FaultKind::Expected(expected) => format!("expected {expected} {here}"),
            FaultKind::Said(said) => format!("{said} {here}"),
        };
        ParseError { at, message }
    }
}

struct ErrorPlace<'a> {
    whole: &'a str,
    at: usize,
}

impl fmt::Display for ErrorPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 24;
        let rest = self.whole.get(self.at..).unwrap_or_default();
        let shown: String = rest.chars().take(SHOWN).collect();
        let more = if shown.len() < rest.len() { "…" } else { "" };
        if rest.is_empty() {
            write!(f, "at character {}, the end", self.at)
        } else {
            write!(f, "at character {}: `{shown}{more}`", self.at)
        }
    }
}
