//! The table of single values by name.

use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;

pub(crate) fn setting(
    connection: &Connection,
    name: &'static str,
) -> Result<Option<String>, StoreError> {
    connection
        .query_row("SELECT value FROM setting WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()
        .map_err(StoreError::failed("read a setting"))
}

pub(crate) fn set_setting(
    connection: &Connection,
    name: &'static str,
    value: &str,
) -> Result<(), StoreError> {
    connection
        .execute(
            "INSERT INTO setting (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [name, value],
        )
        .map(drop)
        .map_err(StoreError::failed("write a setting"))
}
