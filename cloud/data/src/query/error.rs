//! Why a request makes no statement.

use odata::ParseError;

/// Why a request cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It is wrong: 400, with a message that points at the character.
    #[error(transparent)]
    Refused(ParseError),
    /// It names a resource that is not there, or that the caller has nothing to do with: 401.
    #[error("{0}")]
    NoRights(String),
    /// The model is wrong, which the request is not to blame for.
    #[error("the model of the data API is at fault: {0}")]
    Broken(String),
}

impl QueryError {
    /// What is wrong at a byte of the request. [`QueryError::within`] says what stands there.
    pub(super) fn refused(at: usize, message: impl Into<String>) -> Self {
        let message = message.into();
        QueryError::Refused(ParseError { at, message })
    }

    /// The model has no resource of this name.
    pub(super) fn no_resource(name: &str) -> Self {
        QueryError::NoRights(format!("there is no resource `{name}`"))
    }

    /// The same to whoever made the request of this text.
    pub(super) fn within(self, text: &str) -> Self {
        match self {
            QueryError::Refused(error) => QueryError::Refused(error.within(text)),
            other => other,
        }
    }
}
