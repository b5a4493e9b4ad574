//! Changes that happen together or not at all.

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

/// By then a server that lost its client has made the changes or undone them.
const SETTLED: Duration = Duration::from_secs(5);

/// Changes that happen together or not at all. Dropped, they did not happen.
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
    /// Begins a transaction. In SQLite it is the only one that writes until it ends; it may be committed together
    /// with those that waited for it.
    ///
    /// # Errors
    /// [`DataError::Busy`] where no connection became free in time.
    pub async fn begin(&self) -> Result<Transaction, DataError> {
        let backend = match &self.pools {
            Pools::Sqlite { writer, .. } => Backend::Sqlite(writer.turn().boxed().await?),
            Pools::Postgres { pools, losses } => {
                let pool = pools.of(self.pool);
                let begin = async || losses.note(pool.begin().boxed().await);
                // Nothing was done yet: another connection will do.
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
    /// Which database it is in.
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

    /// The result of a statement of this transaction.
    fn noted<T>(&mut self, result: Result<T, DataError>) -> Result<T, DataError> {
        let result = match &mut self.backend {
            Backend::Sqlite(_) => result,
            Backend::Postgres(session) => session.done(result),
        };
        self.database.pools.noted(result)
    }

    /// Gives each of its statements so much time, whatever others have. (SQLite's writer has its own limit.)
    pub(crate) fn allow(&mut self, limit: Duration) {
        if let Backend::Postgres(session) = &mut self.backend {
            session.allow(limit);
        }
    }

    /// The first value of each row, as text.
    ///
    /// # Errors
    /// Why the statement failed; the transaction is then good for nothing more.
    pub async fn texts(
        &mut self,
        statement: &impl Statement,
    ) -> Result<Vec<Option<String>>, DataError> {
        let built = statement.built(self.dialect());
        let result = self.connection()?.texts(built).await;
        self.noted(result)
    }

    /// All rows.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn rows(&mut self, statement: &impl Statement) -> Result<Vec<Row>, DataError> {
        let built = statement.built(self.dialect());
        let result = self.connection()?.rows(built).await;
        self.noted(result)
    }

    /// The first row.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn row(&mut self, statement: &impl Statement) -> Result<Option<Row>, DataError> {
        let built = statement.built(self.dialect());
        let result = self.connection()?.row(built).await;
        self.noted(result)
    }

    /// How many rows it changed.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn execute(&mut self, statement: &impl Statement) -> Result<u64, DataError> {
        let built = statement.built(self.dialect());
        let result = self.connection()?.execute(built).await;
        self.noted(result)
    }

    /// The numbers of the first column.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn ids(&mut self, statement: &impl Statement) -> Result<Vec<i64>, DataError> {
        let rows = self.rows(statement).await?;
        rows.iter().map(|row| row.id(0)).collect()
    }

    /// The rows that a statement answers about these rows, whose numbers are its last value: as many of them at once as
    /// one statement names.
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

    /// The numbers of their first column.
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

    /// Executes a statement about these rows, whose numbers are its last value: as many of them at once as one statement
    /// names.
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

    /// The number in the first row's first column, unless there is none.
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn id(&mut self, statement: &impl Statement) -> Result<Option<i64>, DataError> {
        match self.row(statement).await? {
            Some(row) => row.number(0),
            None => Ok(None),
        }
    }

    /// The number of the row that a statement makes, which returns it (`RETURNING id`).
    ///
    /// # Errors
    /// As [`Transaction::texts`].
    pub async fn new_id(&mut self, insert: &impl Statement) -> Result<i64, DataError> {
        self.id(insert).await?.ok_or_else(DataError::no_id)
    }

    /// Statements of ours, several at once, without parameters.
    pub(crate) async fn script(&mut self, text: impl Into<String>) -> Result<(), DataError> {
        let result = self.connection()?.script(text.into()).await;
        self.noted(result)
    }

    /// Somebody waits for this: they are told once the transaction is committed.
    pub fn effect(&mut self, effect: Effect) {
        if !self.effects.contains(&effect) {
            self.effects.push(effect);
        }
    }

    /// Makes the changes, and tells those who listen of the effects; also where nobody knows whether they were made.
    ///
    /// Whoever drops this future half-way gets either both or neither.
    ///
    /// # Errors
    /// Why it failed; then nothing is changed, unless the connection was lost
    /// ([`DataError::Lost`]) or the server said nothing ([`DataError::Silent`]), when nobody knows.
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
                Ok(()) => database.tell(&effects),
                // The changes may be there, or be made in a moment: whoever remembers what was looks again.
                Err(DataError::Lost(_) | DataError::Silent(_)) => {
                    database.tell(&effects);
                    tokio::spawn(async move {
                        tokio::time::sleep(SETTLED).await;
                        database.tell(&effects);
                    });
                }
                Err(_) => {}
            }
            result
        });
        committed.await.map_err(|_| DataError::crashed())?
    }

    /// Undoes the changes at once.
    ///
    /// # Errors
    /// Why it failed; the changes are undone in any case.
    pub async fn rollback(self) -> Result<(), DataError> {
        match self.backend {
            Backend::Sqlite(turn) => turn.rollback().boxed().await,
            Backend::Postgres(session) => session.end("ROLLBACK").await?,
        }
        Ok(())
    }
}

/// How often a transaction that others got in the way of is tried again.
#[derive(Debug)]
pub(crate) struct Retries(u8);

impl Default for Retries {
    fn default() -> Self {
        Retries(4)
    }
}

impl Retries {
    /// Whether the transaction that failed with this is to be tried once more, from its begin. A commit that
    /// failed because the connection was lost is not: it may have been done.
    pub(crate) fn again(&mut self, error: &DataError) -> bool {
        error.may_be_tried_again() && self.once_more()
    }

    /// Whether any try is left; it is taken.
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
