//! What the platform remembers of itself, by name.

use sea_query::{Alias, Expr, ExprTrait, OnConflict, Query};

use crate::error::DataError;
use crate::transaction::Transaction;

/// What is remembered under a name.
///
/// # Errors
/// Why the statement failed.
pub async fn read(transaction: &mut Transaction, name: &str) -> Result<Option<String>, DataError> {
    let select = Query::select()
        .column(Alias::new("value"))
        .from(Alias::new("platform_setting"))
        .and_where(Expr::col(Alias::new("name")).eq(name))
        .take();
    let mut values = transaction.texts(&select).await?;
    Ok(values.pop().flatten())
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
    let insert = Query::insert()
        .into_table(Alias::new("platform_setting"))
        .columns([Alias::new("name"), Alias::new("value")])
        .values_panic([name.into(), value.into()])
        .on_conflict(
            OnConflict::column(Alias::new("name"))
                .update_column(Alias::new("value"))
                .to_owned(),
        )
        .take();
    transaction.execute(&insert).await?;
    Ok(())
}
