//! What the platform remembers of itself, by name.

use crate::database::Database;
use crate::error::DataError;
use crate::keyring::{Keyring, Place};
use crate::statement::sql;
use crate::transaction::Transaction;

/// What is remembered under a name.
///
/// # Errors
/// Why the statement failed.
pub async fn read(transaction: &mut Transaction, name: &str) -> Result<Option<String>, DataError> {
    let select = sql("SELECT value FROM platform_setting WHERE name = ?").with(name);
    let mut values = transaction.texts(&select).await?;
    Ok(values.pop().flatten())
}

/// What is remembered under a name; where nothing is, this from now on. All programs that ask at once get the
/// same.
///
/// # Errors
/// Why a statement failed.
pub async fn read_or_write(
    database: &Database,
    name: &str,
    value: &str,
) -> Result<String, DataError> {
    let insert =
        sql("INSERT INTO platform_setting (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING");
    database.execute(&insert.with(name).with(value)).await?;
    let mut transaction = database.begin().await?;
    let stored = read(&mut transaction, name).await?;
    stored.ok_or_else(|| DataError::Null {
        column: name.to_owned(),
    })
}

/// As [`read_or_write`], of what is secret: it is encrypted in the database where there are keys. One that was kept
/// before there were stays as it is until secrets are rotated ([`crate::sealed::rotate`]).
///
/// # Errors
/// Why a statement failed; where it is encrypted with another key.
pub async fn read_or_write_secret(
    database: &Database,
    keyring: &Keyring,
    name: &str,
    value: &str,
) -> Result<String, DataError> {
    let place = Place::of_setting(name);
    let stored = read_or_write(database, name, &keyring.seal(&place, value)?).await?;
    Ok(keyring.open(&place, &stored)?)
}

/// Remembers this under a name, in place of what was.
///
/// # Errors
/// Why the statement failed.
pub async fn write(
    transaction: &mut Transaction,
    name: &str,
    value: &str,
) -> Result<(), DataError> {
    let insert = sql("INSERT INTO platform_setting (name, value) VALUES (?, ?) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value");
    transaction.execute(&insert.with(name).with(value)).await?;
    Ok(())
}
