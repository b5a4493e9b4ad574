//! Transactions that are committed together, and what becomes of them.

use std::sync::Arc;

use tokio::sync::watch;

use crate::error::DataError;

/// Transactions that are committed together.
pub(super) struct Group {
    /// Those that ended well.
    pub(super) members: usize,
    /// Somebody is in line who will commit it.
    pub(super) ending: bool,
    pub(super) outcome: watch::Sender<GroupOutcome>,
}

/// What became of a group.
#[derive(Debug, Clone)]
pub(super) enum GroupOutcome {
    Open,
    Committed,
    /// It is as if it had never been.
    Undone,
    /// There was no room for it.
    Full,
    /// The commit failed for this reason.
    Failed(Arc<str>),
}

impl GroupOutcome {
    /// What each of its transactions is told.
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
