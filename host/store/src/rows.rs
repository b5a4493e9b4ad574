//! Shared by all tables: running statements in a transaction, and reading rows as names, numbers and JSON.

use std::str::FromStr;

use rusqlite::{Connection, Row, Transaction, TransactionBehavior};
use serde_json::Value;

use crate::error::{DatabaseError, StoreError};

/// Runs `work` in one transaction, which has reached the disk when this returns.
pub(crate) fn begin<T>(
    connection: &mut Connection,
    action: &'static str,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, DatabaseError>,
) -> Result<T, StoreError> {
    let run = || -> Result<T, DatabaseError> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    };
    run().map_err(DatabaseError::during(action))
}

/// Returns all rows of a query.
pub(crate) fn rows<T, C: FromIterator<T>>(
    connection: &Connection,
    query: &str,
    read: impl FnMut(&Row<'_>) -> Result<T, DatabaseError>,
) -> Result<C, DatabaseError> {
    let mut statement = connection.prepare(query)?;
    statement.query_and_then([], read)?.collect()
}

/// Returns the name in a column.
pub(crate) fn name_at<T: FromStr>(
    row: &Row<'_>,
    column: usize,
    what: &'static str,
) -> Result<T, DatabaseError> {
    Ok(parse_name(what, &row.get::<_, String>(column)?)?)
}

/// Returns the JSON in a column.
pub(crate) fn json_at(
    row: &Row<'_>,
    column: usize,
    what: &'static str,
) -> Result<Value, DatabaseError> {
    Ok(parse_json(what, &row.get::<_, String>(column)?)?)
}

/// Returns the number in a column, as [`row_id`] wrote it.
pub(crate) fn number_at(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

/// Converts a number to SQLite's form.
pub(crate) fn row_id(what: &'static str, number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::TooLarge {
        what,
        value: number.to_string(),
    })
}

/// Parses stored JSON.
pub(crate) fn parse_json(what: &'static str, text: &str) -> Result<Value, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged {
        what,
        // Only the error, not the text: a target state contains secrets.
        value: error.to_string(),
    })
}

/// Parses a stored name.
pub(crate) fn parse_name<T: FromStr>(what: &'static str, text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| StoreError::Damaged {
        what,
        value: text.to_owned(),
    })
}
