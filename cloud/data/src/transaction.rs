//! Changes that are made together or not at all.

use std::time::Duration;

use crate::connection::Connection;
use crate::database::Database;
use crate::dialect::Dialect;
use crate::effect::Effect;
use crate::error::DataError;
use crate::generation;
use crate::pools::Pools;
use crate::row::Row;
use crate::session::Session;
use crate::statement::{AT_ONCE, Sql, Statement};
use crate::writer::WriterTurn;
use futures::FutureExt as _;

/// After this time, a server that lost its client has made the changes or undone them.
const SETTLED: Duration = Duration::from_secs(5);

/// Changes that are made together or not at all. Dropping it discards them.
pub struct Transaction {
    backend: Backend,
    database: Database,
    effects: Vec<Effect>,
}

enum Backend {
    Sqlite(WriterTurn),
    Postgres(Session),
}

impl Database {
    /// Begins a transaction. In SQLite it is the only one that writes until it ends; it may be committed together with
    /// others that waited for it.
    ///
    /// # Errors
    /// [`DataError::Busy`] if no connection became free in time.
    pub async fn begin(&self) -> Result<Transaction, DataError> {
        let backend = match &self.pools {
            Pools::Sqlite { writer, .. } => Backend::Sqlite(writer.turn().boxed().await?),
            Pools::Postgres { pools, losses } => {
                let pool = pools.get(self.pool);
                let begin = async || losses.note(pool.begin().boxed().await);
                // Nothing has been done yet: another connection will do.
                Backend::Postgres(match begin().await {
                    Err(DataError::Lost(_)) => begin().await?,
                    begun => begun?,
                })
            }
        };
        Ok(Transaction {
            backend,
            database: self.clone(),
            effects: Vec::new(),
        })
    }
}

impl Transaction {
    /// Returns the kind of its database.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self.backend {
            Backend::Sqlite(_) => Dialect::Sqlite,
            Backend::Postgres(_) => Dialect::Postgres,
        }
    }

    fn connection(&mut self) -> Result<Connection<'_>, DataError> {
        Ok(match &mut self.backend {
            Backend::Sqlite(turn) => Connection::Sqlite(turn.connection()?),
            Backend::Postgres(session) => session.connection()?,
        })
    }

    /// Records the result of a statement of this transaction.
    fn noted<T>(&mut self, result: Result<T, DataError>) -> Result<T, DataError> {
        let result = match &mut self.backend {
            Backend::Sqlite(_) => result,
            Backend::Postgres(session) => session.done(result),
        };
        self.database.pools.noted(result)
    }

    /// Sets the time limit of its statements, independently of other limits. (SQLite's writer has its own limit.)
    pub(crate) fn allow(&mut self, limit: Duration) {
        if let Backend::Postgres(session) = &mut self.backend {
            session.allow(limit);
        }
    }

    /// Returns the first value of each row, as text.
    ///
    /// # Errors
    /// If the statement fails; the transaction can then no longer be used.
    pub async fn texts(
        &mut self,
        statement: &impl Statement,
    ) -> Result<Vec<Option<String>>, DataError> {
        let built = statement.built(self.dialect());
        let result = self.connection()?.texts(built).await;
        self.noted(result)
    }

    /// Returns all rows.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn rows(&mut self, statement: &impl Statement) -> Result<Vec<Row>, DataError> {
        let built = statement.built(self.dialect());
        let result = self.connection()?.rows(built).await;
        self.noted(result)
    }

    /// Returns the first row.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn row(&mut self, statement: &impl Statement) -> Result<Option<Row>, DataError> {
        let built = statement.built(self.dialect());
        let result = self.connection()?.row(built).await;
        self.noted(result)
    }

    /// Executes a statement, and returns how many rows it changed.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn execute(&mut self, statement: &impl Statement) -> Result<u64, DataError> {
        let built = statement.built(self.dialect());
        let result = self.connection()?.execute(built).await;
        self.noted(result)
    }

    /// Returns the numbers of the first column.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn ids(&mut self, statement: &impl Statement) -> Result<Vec<i64>, DataError> {
        let rows = self.rows(statement).await?;
        rows.iter().map(|row| row.id(0)).collect()
    }

    /// Returns the rows of a statement about the rows with these numbers, which are its last value: in batches of as
    /// many as one statement may name.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub(crate) async fn rows_about(
        &mut self,
        ids: &[i64],
        statement: Sql,
    ) -> Result<Vec<Row>, DataError> {
        let mut rows = Vec::new();
        for ids in ids.chunks(AT_ONCE) {
            rows.extend(self.rows(&statement.clone().with_all(ids)).await?);
        }
        Ok(rows)
    }

    /// Returns the numbers in the first column of [`Transaction::rows_about`].
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub(crate) async fn ids_about(
        &mut self,
        ids: &[i64],
        statement: Sql,
    ) -> Result<Vec<i64>, DataError> {
        let rows = self.rows_about(ids, statement).await?;
        rows.iter().map(|row| row.id(0)).collect()
    }

    /// Executes a statement about the rows with these numbers, which are its last value: in batches of as many as one
    /// statement may name.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub(crate) async fn execute_about(
        &mut self,
        ids: &[i64],
        statement: Sql,
    ) -> Result<(), DataError> {
        for ids in ids.chunks(AT_ONCE) {
            self.execute(&statement.clone().with_all(ids)).await?;
        }
        Ok(())
    }

    /// Returns the number in the first row's first column, if there is one.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn id(&mut self, statement: &impl Statement) -> Result<Option<i64>, DataError> {
        match self.row(statement).await? {
            Some(row) => row.number(0),
            None => Ok(None),
        }
    }

    /// Inserts a row, and returns its number, which the statement returns (`RETURNING id`).
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn new_id(&mut self, insert: &impl Statement) -> Result<i64, DataError> {
        self.id(insert).await?.ok_or_else(DataError::no_id)
    }

    /// Executes several of our own statements at once, without parameters.
    pub(crate) async fn script(&mut self, text: impl Into<String>) -> Result<(), DataError> {
        let result = self.connection()?.script(text.into()).await;
        self.noted(result)
    }

    /// Adds an effect, which is reported to the listener once the transaction is committed.
    pub fn effect(&mut self, effect: Effect) {
        if !self.effects.contains(&effect) {
            self.effects.push(effect);
        }
    }

    /// Makes the changes, and reports the effects to the listener, even if it is unknown whether the changes were made.
    ///
    /// If this future is dropped half-way, either both happen or neither.
    ///
    /// # Errors
    /// If it fails; then nothing is changed, except that the outcome is unknown if the connection was lost
    /// ([`DataError::Lost`]) or the server did not answer ([`DataError::Silent`]).
    pub async fn commit(mut self) -> Result<(), DataError> {
        for raise in generation::raising(&self.effects) {
            self.execute(&raise).await?;
        }
        let Transaction {
            backend,
            database,
            effects,
        } = self;
        let committed = tokio::spawn(async move {
            let result = match backend {
                Backend::Sqlite(turn) => turn.commit().await,
                Backend::Postgres(session) => database.pools.noted(session.end("COMMIT").await),
            };
            match &result {
                Ok(()) => database.notify(&effects),
                // The changes may have been made, or be made in a moment: caches must be checked again.
                Err(DataError::Lost(_) | DataError::Silent(_)) => {
                    database.notify(&effects);
                    tokio::spawn(async move {
                        tokio::time::sleep(SETTLED).await;
                        database.notify(&effects);
                    });
                }
                Err(_) => {}
            }
            result
        });
        committed.await.map_err(|_| DataError::crashed())?
    }

    /// Undoes the changes immediately.
    ///
    /// # Errors
    /// If it fails; the changes are undone in any case.
    pub async fn rollback(self) -> Result<(), DataError> {
        match self.backend {
            Backend::Sqlite(turn) => turn.rollback().boxed().await,
            Backend::Postgres(session) => session.end("ROLLBACK").await?,
        }
        Ok(())
    }
}

/// How often a transaction that conflicted with others is repeated.
#[derive(Debug)]
pub(crate) struct Retries(u8);

impl Default for Retries {
    fn default() -> Self {
        Retries(4)
    }
}

impl Retries {
    /// Returns whether a transaction that failed with this error should be repeated from its beginning. A commit that
    /// failed because the connection was lost is not repeated: it may have succeeded.
    pub(crate) fn again(&mut self, error: &DataError) -> bool {
        error.may_be_tried_again() && self.once_more()
    }

    /// Uses one repetition; returns false if none is left.
    pub(crate) fn once_more(&mut self) -> bool {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}
