//! Rows of any resource, passed between the database and the rules.

use std::collections::BTreeMap;

use resources::{Column, Field, Resource, StoredValue, Type};
use sea_query::Value;

use crate::dialect::Dialect;
use crate::error::DataError;
use crate::row::Row;
use crate::statement::{Sql, sql};
use crate::transaction::Transaction;

/// The values of a row's fields, by their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record(BTreeMap<&'static str, StoredValue>);

impl Record {
    /// Creates the record of a row that is created at `now`, in milliseconds.
    pub(crate) fn made_at(now: i64) -> Self {
        let mut record = Record::default();
        record.set_number("created_at", now);
        record.set_number("modified_at", now);
        record
    }

    pub(crate) fn get(&self, field: &str) -> Option<&StoredValue> {
        self.0.get(field)
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.0.contains_key(field)
    }

    pub(crate) fn set(&mut self, field: &'static str, value: StoredValue) {
        self.0.insert(field, value);
    }

    pub(crate) fn remove(&mut self, field: &str) {
        self.0.remove(field);
    }

    pub(crate) fn set_number(&mut self, field: &'static str, number: i64) {
        self.set(field, StoredValue::Integer(number));
    }

    pub(crate) fn set_text(&mut self, field: &'static str, text: impl Into<String>) {
        self.set(field, StoredValue::Text(text.into()));
    }

    pub(crate) fn number(&self, field: &str) -> Option<i64> {
        match self.get(field) {
            Some(StoredValue::Integer(number)) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        match self.get(field) {
            Some(StoredValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, field: &str) -> Option<bool> {
        match self.get(field) {
            Some(StoredValue::Boolean(flag)) => Some(*flag),
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &StoredValue)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }
}

/// Returns the fields of a resource that have a column, with its name.
pub(crate) fn stored(resource: &Resource) -> impl Iterator<Item = (&'static str, &Field)> {
    let fields = resource.fields.iter();
    fields.filter_map(|field| match field.column {
        Column::Stored(column) => Some((column, field)),
        _ => None,
    })
}

/// Converts a value for the column of a field: a null has a type as well.
fn bound(field: &Field, value: &StoredValue) -> Value {
    match value {
        StoredValue::Integer(number) => (*number).into(),
        StoredValue::Boolean(flag) => (*flag).into(),
        StoredValue::Text(text) => text.as_str().into(),
        StoredValue::Null => match field.kind {
            Type::Integer | Type::BigInteger | Type::Timestamp | Type::Link { .. } => {
                Value::BigInt(None)
            }
            Type::Boolean => Value::Bool(None),
            _ => Value::String(None),
        },
    }
}

fn read(row: &Row, at: usize, field: &Field) -> Result<StoredValue, DataError> {
    Ok(match field.kind {
        Type::Integer | Type::BigInteger | Type::Timestamp | Type::Link { .. } => row
            .number(at)?
            .map_or(StoredValue::Null, StoredValue::Integer),
        Type::Boolean => row
            .flag(at)?
            .map_or(StoredValue::Null, StoredValue::Boolean),
        _ => row.text(at)?.map_or(StoredValue::Null, StoredValue::Text),
    })
}

/// Returns the columns and values of a record.
fn by_column(resource: &Resource, record: &Record) -> (Vec<&'static str>, Vec<Value>) {
    let values = stored(resource).filter_map(|(column, field)| {
        let value = record.get(field.name)?;
        Some((column, bound(field, value)))
    });
    values.unzip()
}

/// Returns the rows with these ids, ordered by id, and locks them until the transaction ends. Missing rows are left
/// out.
pub(crate) async fn load(
    transaction: &mut Transaction,
    resource: &Resource,
    ids: &[i64],
) -> Result<Vec<(i64, Record)>, DataError> {
    let columns: Vec<&str> = stored(resource).map(|(column, _)| column).collect();
    let lock = match transaction.dialect() {
        Dialect::Sqlite => "",
        Dialect::Postgres => RowLock::ToChange.clause(),
    };
    let (table, columns) = (resource.name, columns.join("\", \""));
    let select = format!("SELECT \"{columns}\" FROM \"{table}\" WHERE id IN (?) ORDER BY id{lock}");
    let rows = transaction.rows_about(ids, sql(select)).await?;
    let records = rows.into_iter().map(|row| {
        let mut record = Record::default();
        for (at, (_, field)) in stored(resource).enumerate() {
            record.set(field.name, read(&row, at, field)?);
        }
        Ok((record.number("id").unwrap_or_default(), record))
    });
    records.collect()
}

/// The purpose of a lock on rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowLock {
    ToChange,
    /// No new links to the rows can be created either.
    ToDelete,
}

impl RowLock {
    fn clause(self) -> &'static str {
        match self {
            RowLock::ToChange => " FOR NO KEY UPDATE",
            RowLock::ToDelete => " FOR UPDATE",
        }
    }
}

/// Locks these rows for this transaction, in the order of their ids. In SQLite that is not needed, because only one
/// transaction writes at a time.
pub(crate) async fn lock(
    transaction: &mut Transaction,
    table: &str,
    ids: &[i64],
    lock: RowLock,
) -> Result<(), DataError> {
    if transaction.dialect() == Dialect::Postgres {
        let lock = lock.clause();
        let select = format!("SELECT id FROM \"{table}\" WHERE id IN (?) ORDER BY id{lock}");
        transaction.ids_about(ids, sql(select)).await?;
    }
    Ok(())
}

/// Inserts a row, and returns its id.
pub(crate) async fn insert(
    transaction: &mut Transaction,
    resource: &Resource,
    record: &Record,
) -> Result<i64, DataError> {
    let (columns, values) = by_column(resource, record);
    let (table, columns) = (resource.name, columns.join("\", \""));
    let places = vec!["?"; values.len()].join(", ");
    let insert = format!("INSERT INTO \"{table}\" (\"{columns}\") VALUES ({places}) RETURNING id");
    let insert = values.into_iter().fold(sql(insert), Sql::with);
    transaction.new_id(&insert).await
}

/// Sets the same values in all of these rows.
pub(crate) async fn update(
    transaction: &mut Transaction,
    resource: &Resource,
    ids: &[i64],
    record: &Record,
) -> Result<(), DataError> {
    let (columns, values) = by_column(resource, record);
    if columns.is_empty() {
        return Ok(());
    }
    let (table, columns) = (resource.name, columns.join("\" = ?, \""));
    let update = format!("UPDATE \"{table}\" SET \"{columns}\" = ? WHERE id IN (?)");
    let update = values.into_iter().fold(sql(update), Sql::with);
    transaction.execute_about(ids, update).await
}

/// Deletes these rows, and those that depend on them.
pub(crate) async fn delete(
    transaction: &mut Transaction,
    table: &str,
    ids: &[i64],
) -> Result<(), DataError> {
    let delete = format!("DELETE FROM \"{table}\" WHERE id IN (?)");
    transaction.execute_about(ids, sql(delete)).await
}

/// Returns the ids of the rows whose link `column` refers to one of these.
pub(crate) async fn leading_to(
    transaction: &mut Transaction,
    table: &str,
    column: &str,
    ids: &[i64],
) -> Result<Vec<i64>, DataError> {
    let select = format!("SELECT id FROM \"{table}\" WHERE \"{column}\" IN (?)");
    transaction.ids_about(ids, sql(select)).await
}

/// Returns the distinct targets of the link `column` of these rows.
pub(crate) async fn behind(
    transaction: &mut Transaction,
    table: &str,
    column: &str,
    ids: &[i64],
) -> Result<Vec<i64>, DataError> {
    let select = format!(
        "SELECT DISTINCT \"{column}\" FROM \"{table}\" WHERE id IN (?) AND \"{column}\" IS NOT NULL"
    );
    let mut behind = transaction.ids_about(ids, sql(select)).await?;
    behind.sort_unstable();
    behind.dedup();
    Ok(behind)
}

/// Returns the number of the row that has this value in a column.
pub(crate) async fn with_value(
    transaction: &mut Transaction,
    table: &str,
    column: &str,
    value: &str,
) -> Result<Option<i64>, DataError> {
    let select = format!("SELECT id FROM \"{table}\" WHERE \"{column}\" = ?");
    transaction.id(&sql(select).with(value)).await
}
