//! A row of a result.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Column, Row as _, TypeInfo, ValueRef};

use crate::error::DataError;

/// A row of a result; its values are accessed by position, from 0.
#[derive(Debug)]
pub struct Row(EngineRow);

#[derive(Debug)]
enum EngineRow {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl From<SqliteRow> for Row {
    fn from(row: SqliteRow) -> Self {
        Row(EngineRow::Sqlite(row))
    }
}

impl From<PgRow> for Row {
    fn from(row: PgRow) -> Self {
        Row(EngineRow::Postgres(row))
    }
}

impl Row {
    /// Returns a whole number, or `None` for null.
    ///
    /// # Errors
    /// [`DataError::Other`] if there is no such value, or it has another type.
    pub fn number(&self, at: usize) -> Result<Option<i64>, DataError> {
        let number = match &self.0 {
            EngineRow::Sqlite(row) => row.try_get_unchecked(at),
            // Numbers that do not come from a column are narrower there.
            EngineRow::Postgres(row) => match row.try_get_raw(at)?.type_info().name() {
                "INT4" => row.try_get::<Option<i32>, _>(at).map(|n| n.map(i64::from)),
                "INT2" => row.try_get::<Option<i16>, _>(at).map(|n| n.map(i64::from)),
                _ => row.try_get(at),
            },
        };
        Ok(number?)
    }

    /// Returns text, or `None` for null.
    ///
    /// # Errors
    /// [`DataError::Other`] if there is no such value, or it has another type.
    pub fn text(&self, at: usize) -> Result<Option<String>, DataError> {
        let text = match &self.0 {
            EngineRow::Sqlite(row) => row.try_get_unchecked(at),
            EngineRow::Postgres(row) => row.try_get_unchecked(at),
        };
        Ok(text?)
    }

    /// Returns the bytes of a non-nullable column.
    ///
    /// # Errors
    /// [`DataError::Other`] if there is no such value, or it has another type.
    pub fn bytes(&self, at: usize) -> Result<Vec<u8>, DataError> {
        let bytes: Option<Vec<u8>> = match &self.0 {
            EngineRow::Sqlite(row) => row.try_get_unchecked(at),
            EngineRow::Postgres(row) => row.try_get(at),
        }?;
        bytes.ok_or_else(|| self.null(at))
    }

    /// Returns true or false, or `None` for null.
    ///
    /// # Errors
    /// [`DataError::Other`] if there is no such value, or it has another type.
    pub fn flag(&self, at: usize) -> Result<Option<bool>, DataError> {
        let flag = match &self.0 {
            EngineRow::Sqlite(row) => row.try_get_unchecked(at),
            EngineRow::Postgres(row) => row.try_get(at),
        };
        Ok(flag?)
    }

    /// Returns a whole number of a non-nullable column.
    ///
    /// # Errors
    /// As [`Row::number`], and if it is null.
    pub fn id(&self, at: usize) -> Result<i64, DataError> {
        self.number(at)?.ok_or_else(|| self.null(at))
    }

    /// Returns the text of a non-nullable column.
    ///
    /// # Errors
    /// As [`Row::text`], and if it is null.
    pub fn some_text(&self, at: usize) -> Result<String, DataError> {
        self.text(at)?.ok_or_else(|| self.null(at))
    }

    fn null(&self, at: usize) -> DataError {
        let column = match &self.0 {
            EngineRow::Sqlite(row) => row.columns().get(at).map(|column| column.name().to_owned()),
            EngineRow::Postgres(row) => {
                row.columns().get(at).map(|column| column.name().to_owned())
            }
        };
        DataError::Null {
            column: column.unwrap_or_default(),
        }
    }
}
