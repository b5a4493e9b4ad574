//! Errors of writes.

use resources::ValueError;

use crate::error::DataError;
use crate::query::QueryError;

/// Why a write is refused or failed. The text of variants that have one is sent to the client
/// unchanged.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The request is invalid, or a rule refuses it: 400.
    #[error("{0}")]
    Refused(String),
    /// The caller has no right of this kind, or not on this row: 401, without a text.
    #[error("this credential has no right to do so")]
    NoRights,
    /// The change is not allowed for this fleet or device: 403.
    #[error("{0}")]
    Forbidden(String),
    /// The request refers to something that does not exist: 404.
    #[error("{0}")]
    NotFound(String),
    /// The value is already in use, or something else conflicts: 409.
    #[error("{0}")]
    Conflict(String),
    /// The database failed; 503 if [`DataError::Busy`], otherwise 500.
    #[error(transparent)]
    Data(DataError),
    /// A bug in the program: 500.
    #[error("{0}")]
    Broken(String),
}

/// The result of a write.
pub type WriteResult<T = ()> = Result<T, WriteError>;

impl WriteError {
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        WriteError::Refused(text.into())
    }

    /// Returns the underlying failure of the database, if there is one.
    #[must_use]
    pub fn data(&self) -> Option<&DataError> {
        match self {
            WriteError::Data(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DataError> for WriteError {
    fn from(error: DataError) -> Self {
        match error {
            DataError::Unique { .. } | DataError::Referenced { .. } => {
                WriteError::Conflict(error.to_string())
            }
            DataError::Dangling { .. } => WriteError::Refused(error.to_string()),
            // Both are checked before: somebody else was faster.
            DataError::ForeignKey => {
                WriteError::Conflict("Data is referenced by another resource.".to_owned())
            }
            other => WriteError::Data(other),
        }
    }
}

impl From<QueryError> for WriteError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Refused(error) => WriteError::Refused(error.to_string()),
            QueryError::NoRights(_) => WriteError::NoRights,
            broken @ QueryError::Broken(_) => WriteError::Broken(broken.to_string()),
        }
    }
}

impl From<ValueError> for WriteError {
    fn from(error: ValueError) -> Self {
        WriteError::Refused(error.to_string())
    }
}
