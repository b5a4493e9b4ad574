//! Errors in requests that cannot be compiled.

use odata::ParseError;

/// Why a request cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The request is invalid: 400, with a message that points at the character.
    #[error(transparent)]
    Refused(ParseError),
    /// It names a resource that does not exist, or on which the caller has no rights: 401.
    #[error("{0}")]
    NoRights(String),
    /// The model is wrong; the request is not the cause.
    #[error("the model of the data API is at fault: {0}")]
    Broken(String),
}

impl QueryError {
    /// Creates the error at a byte of the request. [`QueryError::within`] adds the text at that
    /// place.
    pub(super) fn refused(at: usize, message: impl Into<String>) -> Self {
        let message = message.into();
        QueryError::Refused(ParseError { at, message })
    }

    /// Creates the error for a name that is not a resource.
    pub(super) fn no_resource(name: &str) -> Self {
        QueryError::NoRights(format!("there is no resource `{name}`"))
    }

    /// Adds the text of the request at the error's place.
    pub(super) fn within(self, text: &str) -> Self {
        match self {
            QueryError::Refused(error) => QueryError::Refused(error.within(text)),
            other => other,
        }
    }
}
