//! Rows as one array of JSON, of no more rows and bytes than may be shown.

use sea_query::{Expr, SelectStatement};

use super::compiler::Compiler;
use super::error::QueryError;
use super::shape::{Listing, TEXT};
use super::sql::custom;
use crate::dialect::Dialect;

/// Rows that may have so many times the bytes that one link may expand to, going by the declared lengths of their
/// fields, are not counted: hardly any field is as long as it may be.
const ALLOWED: u64 = 4;
/// The window of rows up to the current one.
const SO_FAR: &str = "ROWS UNBOUNDED PRECEDING";

/// JSON that cannot be made, for as soon as there is more than may be shown: PostgreSQL fails with an error that
/// [`DataError`](crate::DataError) knows by this word. `depending` on something, or it would be worked out beforehand.
fn too_much_postgres(depending: &str) -> String {
    let word = crate::error::TOO_MUCH;
    format!("to_json(CAST(concat('{word}', {depending}) AS date))")
}

/// The same for SQLite, which fails where a value is longer than it may be. Whatever the bound, this is longer.
const TOO_MUCH_SQLITE: &str = "CAST(zeroblob(2000000000 + count(*)) AS TEXT)";

impl Compiler<'_> {
    /// One array of at most so many rows and bytes ([`Bounds`]); the statement fails where there are more.
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
            rows = self.of_bounded_bytes(rows)?;
        }
        let array = self.of_rows(rows, |name| {
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

    /// The rows as one column of JSON. The statement fails as soon as those so far have more bytes than may be shown:
    /// the row that is too much is the last one that PostgreSQL makes. (SQLite has a limit of its own for that.)
    fn of_bounded_bytes(&self, rows: SelectStatement) -> Result<SelectStatement, QueryError> {
        let bytes = self.bounds.expanded_bytes;
        let mut texts = self.of_rows(rows, |name| format!("row_to_json(\"{name}\")"))?;
        // Or the JSON of each row would be made twice.
        texts.offset(0);
        self.of_rows(texts, |name| {
            let text = format!("\"{name}\".\"{TEXT}\"");
            let sum = format!("sum(octet_length(CAST({text} AS text))) OVER ({SO_FAR})");
            let failure = too_much_postgres(&sum);
            format!("CASE WHEN {sum} > {bytes} THEN {failure} ELSE {text} END")
        })
    }

    /// An array of one row, or of none: there is nothing to put in order or together.
    pub(super) fn array_of_one(&self, listing: Listing) -> Result<Expr, QueryError> {
        let mut row = listing.select;
        row.clear_order_by();
        let (array, row) = match self.dialect {
            Dialect::Sqlite => ("'[' || coalesce(?, '') || ']'", row),
            Dialect::Postgres => (
                "coalesce(?, '[]')",
                self.of_rows(row, |name| format!("json_build_array(\"{name}\")"))?,
            ),
        };
        Ok(custom(self.dialect, array, [Expr::from(row)]))
    }
}
