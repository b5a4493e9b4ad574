//! The platform's own settings, by name.

use crate::database::Database;
use crate::error::DataError;
use crate::keyring::{Keyring, SecretLocation};
use crate::statement::sql;
use crate::transaction::Transaction;

/// Returns the value of a setting.
///
/// # Errors
/// If the statement fails.
pub async fn read(transaction: &mut Transaction, name: &str) -> Result<Option<String>, DataError> {
    let select = sql("SELECT value FROM platform_setting WHERE name = ?").with(name);
    let mut values = transaction.texts(&select).await?;
    Ok(values.pop().flatten())
}

/// Returns the value of a setting; if there is none, stores this one. All programs that call it at the same time get
/// the same value.
///
/// # Errors
/// If a statement fails.
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

/// Like [`read_or_write`], for a secret: it is encrypted in the database if there are keys. A value that was stored
/// before there were keys stays unencrypted until secrets are rotated ([`crate::sealed::rotate`]).
///
/// # Errors
/// If a statement fails, or the value is encrypted with another key.
pub async fn read_or_write_secret(
    database: &Database,
    keyring: &Keyring,
    name: &str,
    value: &str,
) -> Result<String, DataError> {
    let place = SecretLocation::from_setting(name);
    let stored = read_or_write(database, name, &keyring.seal(&place, value)?).await?;
    Ok(keyring.open(&place, &stored)?)
}

/// Sets the value of a setting.
///
/// # Errors
/// If the statement fails.
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
