//! Connections to a PostgreSQL server that may stop to answer.
//!
//! A server that is gone closes its connections. One that hangs (frozen, its disk stuck, a network that swallows packets)
//! does not, and whoever waits for it would wait for ever and keep a place in the pool. So every statement has a
//! limit, above the one that the server itself holds it to, and so has the way of a connection back into its pool.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Postgres};

use crate::connection::{Connection, within};
use crate::error::DataError;

/// What a server that answers needs at most beyond the time that it holds statements to itself.
const GRACE: Duration = Duration::from_secs(5);

/// A pool of connections whose statements have a limit.
#[derive(Clone)]
pub(crate) struct SessionPool {
    pool: PgPool,
    limit: Duration,
}

/// A connection that is nobody else's. Dropped, it goes back to its pool where the server still answers, without the
/// transaction that was open.
pub(crate) struct Session {
    /// None once the server said nothing.
    connection: Option<PoolConnection<Postgres>>,
    limit: Duration,
    /// What the pool's statements have, whatever this session was allowed: its place comes back as soon as others'.
    usual_limit: Duration,
    in_transaction: bool,
}

impl SessionPool {
    /// `statement_timeout` is what the server holds the statements of these connections to.
    pub(crate) fn new(pool: PgPool, statement_timeout: Duration) -> Self {
        SessionPool {
            pool,
            limit: statement_timeout.saturating_add(GRACE),
        }
    }

    /// # Errors
    /// Why no connection can be had.
    pub(crate) async fn try_out(&self) -> Result<(), sqlx::Error> {
        self.pool.acquire().await.map(drop)
    }

    /// # Errors
    /// [`DataError::Busy`] where no connection became free in time.
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
        // Half of it may have got there.
        session.in_transaction = true;
        session.control("BEGIN").await?;
        Ok(session)
    }

    /// Closes all connections, once what is under way is done.
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

    /// Gives statements of this session more time than the pool's have.
    pub(crate) fn allow(&mut self, limit: Duration) {
        self.limit = limit.saturating_add(GRACE);
    }

    /// The result of a statement, after which the connection may be good for nothing.
    pub(crate) fn done<T>(&mut self, result: Result<T, DataError>) -> Result<T, DataError> {
        if let Err(DataError::Silent(_)) = result
            && let Some(connection) = self.connection.take()
        {
            // Out of the pool, which makes another one in its place, and closed.
            drop(connection.detach());
        }
        result
    }

    /// Ends the transaction by `COMMIT` or `ROLLBACK`.
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
            // Cut short, the connection is closed, and its place in the pool is free.
            let _ = tokio::time::timeout(limit, connection.return_to_pool()).await;
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(ending)),
            // The program ends: the connection goes with it, and the server undoes what was open.
            Err(_) => drop(ending),
        }
    }
}
