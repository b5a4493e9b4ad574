//! One way to execute statements on pools and on single connections of both databases.

use futures::TryStreamExt;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row as _};

use crate::error::DataError;
use crate::row::Row;
use crate::statement::Built;

/// Where a statement is executed.
pub(crate) enum Connection<'a> {
    Sqlite(&'a mut SqliteConnection),
    PostgresPool(&'a PgPool),
    Postgres(&'a mut PgConnection),
}

/// Runs `$call` on the query for whichever connection it is. The text is ours: statements are built by
/// sea-query or written in this crate, and what requests say is among the values.
macro_rules! on {
    ($connection:expr, $built:expr, |$query:ident, $executor:ident| $call:expr) => {{
        let built = $built;
        match $connection {
            Connection::Sqlite($executor) => {
                let Built { text, values } = built;
                let $query = sqlx::query_with::<sqlx::Sqlite, _>(AssertSqlSafe(text), values);
                $call
            }
            Connection::PostgresPool($executor) => {
                let (text, values) = (built.typed(), built.values);
                let $query = sqlx::query_with::<sqlx::Postgres, _>(AssertSqlSafe(text), values);
                $call
            }
            Connection::Postgres($executor) => {
                let (text, values) = (built.typed(), built.values);
                let $query = sqlx::query_with::<sqlx::Postgres, _>(AssertSqlSafe(text), values);
                $call
            }
        }
    }};
}

impl Connection<'_> {
    /// The first value of each row, as text.
    pub(crate) async fn texts(self, built: Built) -> Result<Vec<Option<String>>, DataError> {
        on!(self, built, |query, executor| {
            let mut texts = Vec::new();
            let mut rows = query.fetch(executor);
            while let Some(row) = rows.try_next().await? {
                texts.push(row.try_get_unchecked(0)?);
            }
            Ok(texts)
        })
    }

    /// The first value of each row, one after the other, until `take` wants no more.
    pub(crate) async fn each_text<F, T>(self, built: Built, take: F) -> Result<(), DataError>
    where
        F: Fn(Option<String>) -> T,
        T: Future<Output = bool>,
    {
        on!(self, built, |query, executor| {
            let mut rows = query.fetch(executor);
            while let Some(row) = rows.try_next().await? {
                if !take(row.try_get_unchecked(0)?).await {
                    break;
                }
            }
            Ok(())
        })
    }

    pub(crate) async fn rows(self, built: Built) -> Result<Vec<Row>, DataError> {
        on!(self, built, |query, executor| {
            let rows = query.fetch_all(executor).await?;
            Ok(rows.into_iter().map(Row::from).collect())
        })
    }

    pub(crate) async fn row(self, built: Built) -> Result<Option<Row>, DataError> {
        on!(self, built, |query, executor| {
            Ok(query.fetch_optional(executor).await?.map(Row::from))
        })
    }

    pub(crate) async fn execute(self, built: Built) -> Result<u64, DataError> {
        on!(self, built, |query, executor| {
            Ok(query.execute(executor).await?.rows_affected())
        })
    }

    /// Statements of ours without parameters, several at once.
    pub(crate) async fn script(self, text: String) -> Result<(), DataError> {
        let script = sqlx::raw_sql(AssertSqlSafe(text));
        let _changed = match self {
            Connection::Sqlite(executor) => script.execute(executor).await?.rows_affected(),
            Connection::PostgresPool(executor) => script.execute(executor).await?.rows_affected(),
            Connection::Postgres(executor) => script.execute(executor).await?.rows_affected(),
        };
        Ok(())
    }
}
