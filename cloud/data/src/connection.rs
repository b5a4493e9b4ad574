//! Executing statements in the same way on pools and on single connections of both databases.
//!
//! Futures that wait for a database are boxed: here, where a pool or the writer hands out a connection, and in
//! [`crate::write()`]. The future of a request handler contains all futures that it awaits, and for each handler the
//! compiler proves many times that it can be sent between threads. Without the boxes, that proof extends into the
//! database's driver, and took half of the compile time of the dashboard.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, TryStreamExt as _};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row as _};

use crate::error::DataError;
use crate::row::Row;
use crate::statement::BuiltStatement;

/// The connection on which a statement is executed.
pub(crate) enum Connection<'a> {
    Sqlite(&'a mut SqliteConnection),
    /// With the maximum time until the server answers.
    Postgres(&'a mut PgConnection, Duration),
}

/// Waits for the server's answer within `limit`. SQLite runs in this process and ends its statements by itself, so it
/// has no limit here.
///
/// # Errors
/// [`DataError::Silent`] if the server does not answer; the connection can then no longer be used.
pub(crate) async fn within<T, E: Into<DataError>>(
    limit: Option<Duration>,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, DataError> {
    match limit {
        None => answer.await.map_err(Into::into),
        Some(limit) => match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer.map_err(Into::into),
            Err(_) => Err(DataError::Silent(limit)),
        },
    }
}

/// A boxed future that runs `$call` on the query for either kind of connection, with its limit. The text is ours:
/// statements are built by sea-query or written in this crate, and everything from requests is among the values.
macro_rules! on {
    ($connection:expr, $built:expr, |$query:ident, $executor:ident, $limit:ident| $call:expr) => {{
        let (connection, built) = ($connection, $built);
        let executed = async move {
            match connection {
                Connection::Sqlite($executor) => {
                    let BuiltStatement { text, values } = built;
                    let $query = sqlx::query_with::<sqlx::Sqlite, _>(AssertSqlSafe(text), values);
                    let $limit = None;
                    $call
                }
                Connection::Postgres($executor, limit) => {
                    let (text, values) = (built.typed(), built.values);
                    let $query = sqlx::query_with::<sqlx::Postgres, _>(AssertSqlSafe(text), values);
                    let $limit = Some(limit);
                    $call
                }
            }
        };
        executed.boxed()
    }};
}

impl<'a> Connection<'a> {
    /// Returns the first value of each row, as text.
    pub(crate) fn texts(
        self,
        built: BuiltStatement,
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, DataError>> {
        on!(self, built, |query, executor, limit| {
            let texts = async {
                let mut texts = Vec::new();
                let mut rows = query.fetch(executor);
                while let Some(row) = rows.try_next().await? {
                    texts.push(row.try_get_unchecked(0)?);
                }
                Ok::<_, sqlx::Error>(texts)
            };
            within(limit, texts).await
        })
    }

    /// Passes the first value of each row to `take`, one after another, until it returns false.
    pub(crate) fn each_text<F, T>(
        self,
        built: BuiltStatement,
        take: F,
    ) -> BoxFuture<'a, Result<(), DataError>>
    where
        F: Fn(Option<String>) -> T + Send + 'a,
        T: Future<Output = bool> + Send + 'a,
    {
        on!(self, built, |query, executor, limit| {
            let mut rows = query.fetch(executor);
            // The limit applies to each row, because `take` may be slow, not the server.
            while let Some(row) = within(limit, rows.try_next()).await? {
                if !take(row.try_get_unchecked(0)?).await {
                    break;
                }
            }
            Ok(())
        })
    }

    pub(crate) fn rows(self, built: BuiltStatement) -> BoxFuture<'a, Result<Vec<Row>, DataError>> {
        on!(self, built, |query, executor, limit| {
            let rows = within(limit, query.fetch_all(executor)).await?;
            Ok(rows.into_iter().map(Row::from).collect())
        })
    }

    pub(crate) fn row(
        self,
        built: BuiltStatement,
    ) -> BoxFuture<'a, Result<Option<Row>, DataError>> {
        on!(self, built, |query, executor, limit| {
            let row = within(limit, query.fetch_optional(executor)).await?;
            Ok(row.map(Row::from))
        })
    }

    pub(crate) fn execute(self, built: BuiltStatement) -> BoxFuture<'a, Result<u64, DataError>> {
        on!(self, built, |query, executor, limit| {
            let done = within(limit, query.execute(executor)).await?;
            Ok(done.rows_affected())
        })
    }

    /// Executes several of our own statements at once, without parameters.
    pub(crate) fn script(self, text: String) -> BoxFuture<'a, Result<(), DataError>> {
        let executed = async move {
            let script = sqlx::raw_sql(AssertSqlSafe(text));
            match self {
                Connection::Sqlite(executor) => {
                    within(None, script.execute(executor)).await.map(drop)
                }
                Connection::Postgres(executor, limit) => {
                    within(Some(limit), script.execute(executor))
                        .await
                        .map(drop)
                }
            }
        };
        executed.boxed()
    }
}
