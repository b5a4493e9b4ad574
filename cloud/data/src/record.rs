//! Rows of any resource, on their way between the database and the rules.

use std::collections::BTreeMap;

use resources::{Column, Field, Resource, StoredValue, Type};
use sea_query::{Alias, Expr, ExprTrait, LockType, Query, Value};

use crate::dialect::Dialect;
use crate::error::DataError;
use crate::row::Row;
use crate::statement::InternalStatement;
use crate::transaction::Transaction;

/// Rows that one statement names; both databases take more.
pub(crate) const AT_ONCE: usize = 2000;

/// Values of fields, by their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record(BTreeMap<&'static str, StoredValue>);

impl Record {
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

/// The fields of a resource that have a column.
pub(crate) fn stored(resource: &Resource) -> impl Iterator<Item = (&'static str, &Field)> {
    let fields = resource.fields.iter();
    fields.filter_map(|field| match field.column {
        Column::Stored(column) => Some((column, field)),
        _ => None,
    })
}

/// A value as a column of the field takes it: a null has a type as well.
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

/// The rows of these ids, in the order of the ids, locked until the transaction ends. One that is gone is left
/// out.
pub(crate) async fn load(
    transaction: &mut Transaction,
    resource: &Resource,
    ids: &[i64],
) -> Result<Vec<(i64, Record)>, DataError> {
    let mut records = Vec::with_capacity(ids.len());
    for ids in ids.chunks(AT_ONCE) {
        let mut select = Query::select();
        select
            .columns(stored(resource).map(|(column, _)| Alias::new(column)))
            .from(Alias::new(resource.name))
            .and_where(Expr::col(Alias::new("id")).is_in(ids.iter().copied()))
            .order_by(Alias::new("id"), sea_query::Order::Asc);
        if transaction.dialect() == Dialect::Postgres {
            select.lock(LockType::NoKeyUpdate);
        }
        for row in transaction.rows(&InternalStatement(&select)).await? {
            let mut record = Record::default();
            for (at, (_, field)) in stored(resource).enumerate() {
                record.set(field.name, read(&row, at, field)?);
            }
            let id = record.number("id").unwrap_or_default();
            records.push((id, record));
        }
    }
    Ok(records)
}

/// Takes these rows for this transaction alone, in the order of their ids; also from links that are made to them
/// where they are to be deleted. For PostgreSQL: in SQLite one transaction writes at a time.
pub(crate) async fn lock(
    transaction: &mut Transaction,
    resource: &Resource,
    ids: &[i64],
    to_delete: bool,
) -> Result<(), DataError> {
    for ids in ids.chunks(AT_ONCE) {
        let select = Query::select()
            .column(Alias::new("id"))
            .from(Alias::new(resource.name))
            .and_where(Expr::col(Alias::new("id")).is_in(ids.iter().copied()))
            .order_by(Alias::new("id"), sea_query::Order::Asc)
            .lock(if to_delete {
                LockType::Update
            } else {
                LockType::NoKeyUpdate
            })
            .take();
        transaction.ids(&InternalStatement(&select)).await?;
    }
    Ok(())
}

/// A new row; its id.
pub(crate) async fn insert(
    transaction: &mut Transaction,
    resource: &Resource,
    record: &Record,
) -> Result<i64, DataError> {
    let (columns, values): (Vec<_>, Vec<_>) = stored(resource)
        .filter_map(|(column, field)| {
            let value = record.get(field.name)?;
            Some((Alias::new(column), Expr::val(bound(field, value))))
        })
        .unzip();
    let insert = Query::insert()
        .into_table(Alias::new(resource.name))
        .columns(columns)
        .values_panic(values)
        .returning_col(Alias::new("id"))
        .take();
    transaction.new_id(&InternalStatement(&insert)).await
}

/// The same values for all of these rows.
pub(crate) async fn update(
    transaction: &mut Transaction,
    resource: &Resource,
    ids: &[i64],
    record: &Record,
) -> Result<(), DataError> {
    let values: Vec<(Alias, Expr)> = stored(resource)
        .filter_map(|(column, field)| {
            let value = record.get(field.name)?;
            Some((Alias::new(column), Expr::val(bound(field, value))))
        })
        .collect();
    if values.is_empty() {
        return Ok(());
    }
    for ids in ids.chunks(AT_ONCE) {
        let update = Query::update()
            .table(Alias::new(resource.name))
            .values(values.clone())
            .and_where(Expr::col(Alias::new("id")).is_in(ids.iter().copied()))
            .take();
        transaction.execute(&InternalStatement(&update)).await?;
    }
    Ok(())
}

/// These rows, and what goes with them.
pub(crate) async fn delete(
    transaction: &mut Transaction,
    resource: &str,
    ids: &[i64],
) -> Result<(), DataError> {
    for ids in ids.chunks(AT_ONCE) {
        let delete = Query::delete()
            .from_table(Alias::new(resource))
            .and_where(Expr::col(Alias::new("id")).is_in(ids.iter().copied()))
            .take();
        transaction.execute(&InternalStatement(&delete)).await?;
    }
    Ok(())
}

/// The ids of the rows whose link `column` leads to one of these.
pub(crate) async fn leading_to(
    transaction: &mut Transaction,
    resource: &str,
    column: &str,
    ids: &[i64],
) -> Result<Vec<i64>, DataError> {
    let mut found = Vec::new();
    for ids in ids.chunks(AT_ONCE) {
        let select = Query::select()
            .column(Alias::new("id"))
            .from(Alias::new(resource))
            .and_where(Expr::col(Alias::new(column)).is_in(ids.iter().copied()))
            .take();
        found.extend(transaction.ids(&InternalStatement(&select)).await?);
    }
    Ok(found)
}

/// What the link `column` of these rows leads to, each once.
pub(crate) async fn behind(
    transaction: &mut Transaction,
    resource: &str,
    column: &str,
    ids: &[i64],
) -> Result<Vec<i64>, DataError> {
    let mut found = Vec::new();
    for ids in ids.chunks(AT_ONCE) {
        let select = Query::select()
            .distinct()
            .column(Alias::new(column))
            .from(Alias::new(resource))
            .and_where(Expr::col(Alias::new("id")).is_in(ids.iter().copied()))
            .and_where(Expr::col(Alias::new(column)).is_not_null())
            .take();
        found.extend(transaction.ids(&InternalStatement(&select)).await?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}
