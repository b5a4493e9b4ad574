//! Why a request to a registry failed.

use std::error::Error;
use std::fmt::Display;

/// The kind of a failure, for callers that react to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The registry cannot be reached, its answer is invalid, or it refuses the content.
    Failed,
    /// The registry does not allow this account to do it.
    Denied,
    /// The registry does not have it.
    NotFound,
    /// The [`TokenSource`](crate::TokenSource) failed; the source of this error is its own error.
    TokenSource,
}

/// A failure, with its message for people.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RegistryError {
    /// The kind of failure.
    pub kind: ErrorKind,
    message: String,
    /// What to do about it, if that is known.
    pub hint: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The outcome of a request to a registry.
pub(crate) type Result<T, E = RegistryError> = std::result::Result<T, E>;

impl RegistryError {
    pub(crate) fn new(kind: ErrorKind, message: impl Display) -> Self {
        RegistryError {
            kind,
            message: message.to_string(),
            hint: None,
            source: None,
        }
    }

    pub(crate) fn failed(message: impl Display) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Adds a hint on what to do.
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Adds the cause.
    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the cause, for callers that wrap it in an error of their own.
    #[must_use]
    pub fn into_source(self) -> Option<Box<dyn Error + Send + Sync>> {
        self.source
    }
}
