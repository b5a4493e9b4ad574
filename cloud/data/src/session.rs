//! Connections to a PostgreSQL server that may stop responding.
//!
//! A server that stops closes its connections. One that hangs (frozen, its disk stuck, a network that swallows packets)
//! does not, and its clients would wait forever and occupy a place in the pool. So every statement has a limit, above
//! the server's own, and so has the return of a connection to its pool.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Postgres};

use crate::connection::{Connection, within};
use crate::error::DataError;

/// How long a responsive server needs at most beyond its own time limit for statements.
const GRACE: Duration = Duration::from_secs(5);

/// A pool of connections whose statements have a limit.
#[derive(Clone)]
pub(crate) struct SessionPool {
    pool: PgPool,
    limit: Duration,
}

/// An exclusive connection. When dropped, it returns to its pool if the server still responds, and its open transaction
/// is undone.
pub(crate) struct Session {
    /// `None` once the server did not respond.
    connection: Option<PoolConnection<Postgres>>,
    limit: Duration,
    /// The limit of the pool's statements, independent of [`Session::allow`]: the place in the pool is freed as soon as
    /// others'.
    usual_limit: Duration,
    in_transaction: bool,
}

impl SessionPool {
    /// Creates a pool; `statement_timeout` is the server's own limit for statements of these connections.
    pub(crate) fn new(pool: PgPool, statement_timeout: Duration) -> Self {
        SessionPool {
            pool,
            limit: statement_timeout.saturating_add(GRACE),
        }
    }

    /// Opens a connection to test the server.
    ///
    /// # Errors
    /// If no connection can be opened.
    pub(crate) async fn try_out(&self) -> Result<(), sqlx::Error> {
        self.pool.acquire().await.map(drop)
    }

    /// Returns a connection.
    ///
    /// # Errors
    /// [`DataError::Busy`] if no connection became free in time.
    pub(crate) async fn session(&self) -> Result<Session, DataError> {
        Ok(Session {
            connection: Some(self.pool.acquire().await?),
            limit: self.limit,
            usual_limit: self.limit,
            in_transaction: false,
        })
    }

    pub(crate) async fn begin(&self) -> Result<Session, DataError> {
        let mut session = self.session().await?;
        // The statement may have reached the server even if it fails.
        session.in_transaction = true;
        session.control("BEGIN").await?;
        Ok(session)
    }

    /// Closes all connections, after current statements have ended.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

impl Session {
    pub(crate) fn connection(&mut self) -> Result<Connection<'_>, DataError> {
        let connection = self.connection.as_mut();
        let connection = connection.ok_or(DataError::Silent(self.limit))?;
        Ok(Connection::Postgres(connection, self.limit))
    }

    /// Sets a longer limit for statements of this session.
    pub(crate) fn allow(&mut self, limit: Duration) {
        self.limit = limit.saturating_add(GRACE);
    }

    /// Records the result of a statement, after which the connection may be unusable.
    pub(crate) fn done<T>(&mut self, result: Result<T, DataError>) -> Result<T, DataError> {
        if let Err(DataError::Silent(_)) = result
            && let Some(connection) = self.connection.take()
        {
            // Removes the connection from the pool, which replaces it, and closes it.
            drop(connection.detach());
        }
        result
    }

    /// Ends the transaction with `COMMIT` or `ROLLBACK`.
    pub(crate) async fn end(mut self, word: &'static str) -> Result<(), DataError> {
        self.control(word).await?;
        self.in_transaction = false;
        Ok(())
    }

    async fn control(&mut self, word: &'static str) -> Result<(), DataError> {
        let result = self.connection()?.script(word.to_owned()).await;
        self.done(result)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let (limit, in_transaction) = (self.usual_limit, self.in_transaction);
        let ending = async move {
            if in_transaction {
                let rollback = sqlx::raw_sql(AssertSqlSafe("ROLLBACK")).execute(&mut *connection);
                if within(Some(limit), rollback).await.is_err() {
                    drop(connection.detach());
                    return;
                }
            }
            // On a timeout the connection is closed, and its place in the pool is free.
            let _ = tokio::time::timeout(limit, connection.return_to_pool()).await;
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(ending)),
            // The program ends: the connection is closed with it, and the server undoes the open transaction.
            Err(_) => drop(ending),
        }
    }
}
