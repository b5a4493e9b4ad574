//! The writing connection, and its open group of transactions.

use sqlx::sqlite::SqliteConnection;

use super::group::{Group, GroupOutcome};
use crate::error::DataError;

/// The state that belongs to the current turn.
#[derive(Default)]
pub(super) struct WriterState {
    /// `None` after it broke, until the next turn.
    pub(super) connection: Option<SqliteConnection>,
    pub(super) group: Option<Group>,
    /// A turn began, and was not ended properly.
    pub(super) unfinished: bool,
    pub(super) closed: bool,
    #[cfg(test)]
    pub(super) commits: usize,
}

impl WriterState {
    pub(super) fn connection(&mut self) -> Result<&mut SqliteConnection, DataError> {
        let connection = self.connection.as_mut();
        connection.ok_or_else(DataError::crashed)
    }

    pub(super) fn members(&self) -> usize {
        self.group.as_ref().map_or(0, |group| group.members)
    }

    pub(super) async fn run(&mut self, statement: &'static str) -> Result<(), DataError> {
        let connection = self.connection()?;
        sqlx::query(statement).execute(connection).await?;
        Ok(())
    }

    /// Undoes a turn that was not ended properly.
    pub(super) async fn settle(&mut self) {
        if !self.unfinished {
            return;
        }
        let alone = self.members() == 0;
        let undone = !alone
            && self.run("ROLLBACK TO turn").await.is_ok()
            && self.run("RELEASE turn").await.is_ok();
        if !undone {
            self.abandon().await;
        }
        self.unfinished = false;
    }

    /// Undoes the whole group, unless the database has already done so.
    async fn abandon(&mut self) {
        let result = self.run("ROLLBACK").await;
        if matches!(result, Err(DataError::Lost(_))) {
            self.connection = None;
        }
        if let Some(group) = self.group.take() {
            group.outcome.send_replace(GroupOutcome::Undone);
        }
    }

    /// Commits the group, if there is one.
    pub(super) async fn commit(&mut self) {
        if self.group.is_none() {
            return;
        }
        let outcome = match self.run("COMMIT").await {
            Ok(()) => GroupOutcome::Committed,
            Err(error) => {
                tracing::error!(%error, "transactions could not be committed");
                let source = std::error::Error::source(&error).map(ToString::to_string);
                let reason = source.unwrap_or_else(|| error.to_string());
                if matches!(self.run("ROLLBACK").await, Err(DataError::Lost(_))) {
                    self.connection = None;
                }
                match error {
                    DataError::Full(_) => GroupOutcome::Full,
                    _ => GroupOutcome::Failed(reason.into()),
                }
            }
        };
        #[cfg(test)]
        {
            self.commits += 1;
        }
        if let Some(group) = self.group.take() {
            group.outcome.send_replace(outcome);
        }
    }
}
