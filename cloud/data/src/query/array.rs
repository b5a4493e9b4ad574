//! Rows as one JSON array, with limited numbers of rows and bytes.

use sea_query::{Expr, SelectStatement};

use super::compiler::Compiler;
use super::error::QueryError;
use super::shape::{Listing, TEXT};
use super::sql::custom;
use crate::dialect::Dialect;

/// The bytes of rows are counted only if, according to the declared lengths of their fields, they may exceed the limit
/// of one link by this factor: hardly any field is as long as it may be.
const ALLOWED: u64 = 4;
/// The window of rows up to the current one.
const SO_FAR: &str = "ROWS UNBOUNDED PRECEDING";

/// Returns JSON that fails when it is evaluated, for responses that become too large: [`DataError`](crate::DataError)
/// recognizes PostgreSQL's error by this word. It is `depending` on something, because otherwise it would be evaluated
/// in advance.
fn too_much_postgres(depending: &str) -> String {
    let word = crate::error::TOO_MUCH;
    format!("to_json(CAST(concat('{word}', {depending}) AS date))")
}

/// The same for SQLite, which fails if a value is longer than its limit. This is longer than any limit.
const TOO_MUCH_SQLITE: &str = "CAST(zeroblob(2000000000 + count(*)) AS TEXT)";

impl Compiler<'_> {
    /// Returns one array with limited numbers of rows and bytes ([`Bounds`]); the statement fails if there are more.
    pub(super) fn array(&self, listing: Listing, top: Option<u64>) -> Result<Expr, QueryError> {
        let most = self.bounds.expanded_rows;
        let mut rows = listing.select;
        let is_bounded = top.is_some_and(|top| top <= most);
        if !is_bounded {
            rows.limit(most + 1);
        }
        let longest = listing
            .longest
            .saturating_mul(top.map_or(most, |top| Ord::min(top, most)));
        let is_large =
            self.dialect == Dialect::Postgres && longest > ALLOWED * self.bounds.expanded_bytes;
        if is_large {
            rows = self.limit_bytes(rows)?;
        }
        let array = self.select_from_rows(rows, |name| {
            let text = format!("\"{name}\".\"{TEXT}\"");
            let (array, failure) = match self.dialect {
                Dialect::Postgres => {
                    let row = if is_large {
                        text
                    } else {
                        format!("\"{name}\"")
                    };
                    (
                        format!("coalesce(json_agg({row}), '[]')"),
                        format!("to_json({})", too_much_postgres("count(*)")),
                    )
                }
                Dialect::Sqlite => (
                    format!("'[' || coalesce(group_concat({text}, ','), '') || ']'"),
                    TOO_MUCH_SQLITE.to_owned(),
                ),
            };
            if is_bounded {
                array
            } else {
                format!("CASE WHEN count(*) > {most} THEN {failure} ELSE {array} END")
            }
        })?;
        Ok(Expr::from(array))
    }

    /// Returns the rows as one column of JSON. The statement fails as soon as the rows so far exceed the limit of
    /// bytes: PostgreSQL produces no further row. (SQLite has its own limit for that.)
    fn limit_bytes(&self, rows: SelectStatement) -> Result<SelectStatement, QueryError> {
        let bytes = self.bounds.expanded_bytes;
        let mut texts = self.select_from_rows(rows, |name| format!("row_to_json(\"{name}\")"))?;
        // Otherwise the JSON of each row would be produced twice.
        texts.offset(0);
        self.select_from_rows(texts, |name| {
            let text = format!("\"{name}\".\"{TEXT}\"");
            let sum = format!("sum(octet_length(CAST({text} AS text))) OVER ({SO_FAR})");
            let failure = too_much_postgres(&sum);
            format!("CASE WHEN {sum} > {bytes} THEN {failure} ELSE {text} END")
        })
    }

    /// Returns an array of at most one row, so nothing needs sorting or aggregating.
    pub(super) fn array_of_one(&self, listing: Listing) -> Result<Expr, QueryError> {
        let mut row = listing.select;
        row.clear_order_by();
        let (array, row) = match self.dialect {
            Dialect::Sqlite => ("'[' || coalesce(?, '') || ']'", row),
            Dialect::Postgres => (
                "coalesce(?, '[]')",
                self.select_from_rows(row, |name| format!("json_build_array(\"{name}\")"))?,
            ),
        };
        Ok(custom(self.dialect, array, [Expr::from(row)]))
    }
}
