//! Transactions that are committed together, and their outcome.

use std::sync::Arc;

use tokio::sync::watch;

use crate::error::DataError;

/// Transactions that are committed together.
pub(super) struct Group {
    /// The number of completed transactions.
    pub(super) members: usize,
    /// A task that will commit it is waiting for its turn.
    pub(super) ending: bool,
    pub(super) outcome: watch::Sender<GroupOutcome>,
}

/// The outcome of a group.
#[derive(Debug, Clone)]
pub(super) enum GroupOutcome {
    Open,
    Committed,
    /// The database undid all of it.
    Undone,
    /// The disk was full.
    Full,
    /// The commit failed for this reason.
    Failed(Arc<str>),
}

impl GroupOutcome {
    /// Returns the result for each of its transactions.
    pub(super) fn result(self) -> Result<(), DataError> {
        match self {
            GroupOutcome::Committed => Ok(()),
            GroupOutcome::Undone => Err(DataError::Contended(sqlx::Error::Protocol(
                "a transaction in the same group failed, and this one failed with it".to_owned(),
            ))),
            GroupOutcome::Full => Err(DataError::Full(sqlx::Error::Protocol(
                "there was no room to commit it".to_owned(),
            ))),
            GroupOutcome::Failed(reason) => Err(DataError::Other(sqlx::Error::Protocol(
                (*reason).to_owned(),
            ))),
            GroupOutcome::Open => Err(DataError::crashed()),
        }
    }
}
