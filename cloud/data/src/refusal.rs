//! Why a write is not done.

use resources::ValueError;

use crate::error::DataError;
use crate::query::QueryError;

/// Why a write is not done. The text of those that have one is for the client, as it stands.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The request is wrong, or a rule does not let it pass: 400.
    #[error("{0}")]
    Refused(String),
    /// The caller may do nothing of the kind, or not with this row: 401, without a text.
    #[error("this credential has no right to do so")]
    NoRights,
    /// What it wants is not for this fleet or device: 403.
    #[error("{0}")]
    Forbidden(String),
    /// It names something that is not there: 404.
    #[error("{0}")]
    NotFound(String),
    /// What it wants is taken, or something is in its way: 409.
    #[error("{0}")]
    Conflict(String),
    /// The database failed; 503 where [`DataError::Busy`], else 500.
    #[error(transparent)]
    Data(DataError),
    /// The program is wrong: 500.
    #[error("{0}")]
    Broken(String),
}

/// What a write comes to.
pub type WriteResult<T = ()> = Result<T, WriteError>;

impl WriteError {
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        WriteError::Refused(text.into())
    }

    /// The failure of the database behind it, where that is one.
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
            // Both are looked for before: somebody else was faster.
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
