//! A row's fields as JSON built by the database: in PostgreSQL values of types with the right JSON form, in SQLite
//! texts.

use resources::{Column, Field, Type};
use sea_query::{Alias, Expr, Func};

use super::compiler::Compiler;
use super::error::QueryError;
use super::scope::TableRow;
use super::sql::{as_text, custom, moment_text};
use super::value::{SHORT, longest};
use crate::dialect::Dialect;

/// The maximum number of arguments of one function, below the limits of both databases.
const PIECES: usize = 90;

/// A field of a JSON object.
pub(super) struct JsonField {
    pub(super) name: String,
    pub(super) value: Expr,
    /// Its maximum size in bytes, as far as the declared lengths of fields tell.
    pub(super) longest: u64,
}

impl<'a> Compiler<'a> {
    /// Returns a field of a row, under a name.
    pub(super) fn json_field(
        &self,
        row: &TableRow<'a>,
        field: &Field,
        name: &str,
    ) -> Result<JsonField, QueryError> {
        Ok(JsonField {
            name: name.to_owned(),
            value: self.rendered(row, field)?,
            longest: longest(&field.kind),
        })
    }

    /// Returns the address of a row.
    pub(super) fn metadata_field(&self, row: &TableRow<'a>, address: &str) -> JsonField {
        let start = format!("{{\"uri\":\"{address}/{}(@id)?@id=", row.resource.name);
        let text = concat(vec![
            Expr::val(start),
            as_text(row.column("id")),
            Expr::val("\"}"),
        ]);
        JsonField {
            name: "__metadata".to_owned(),
            value: match self.dialect {
                Dialect::Postgres => custom(self.dialect, "CAST(? AS json)", [text]),
                Dialect::Sqlite => text,
            },
            longest: SHORT,
        }
    }

    /// Returns a field in the JSON form of its type.
    fn rendered(&self, row: &TableRow<'a>, field: &Field) -> Result<Expr, QueryError> {
        let dialect = self.dialect;
        if field.column == Column::Stored("id") && field.nullable {
            return Ok(Expr::cust(match dialect {
                Dialect::Postgres => "CAST(NULL AS bigint)",
                Dialect::Sqlite => "'null'",
            }));
        }
        let value = self.field(row, field)?;
        Ok(match (&field.kind, dialect) {
            (Type::Link { to, .. }, _) => self.reference(value, to),
            (Type::Json { .. }, _) => self.json_or_null("?", [value]),
            (Type::BigInteger, Dialect::Postgres) => as_text(value),
            (Type::Timestamp, Dialect::Postgres) => moment_text(dialect, value),
            (
                Type::Integer
                | Type::Boolean
                | Type::Text { .. }
                | Type::Word(_)
                | Type::JsonText { .. },
                Dialect::Postgres,
            ) => value,
            (Type::Boolean, Dialect::Sqlite) => {
                custom(dialect, "CASE WHEN ? THEN 'true' ELSE 'false' END", [value])
            }
            (Type::BigInteger, Dialect::Sqlite) => {
                self.json_or_null("'\"' || (?) || '\"'", [value])
            }
            (Type::Timestamp, Dialect::Sqlite) => {
                let text = moment_text(dialect, value);
                self.json_or_null("'\"' || (?) || '\"'", [text])
            }
            (
                Type::Integer | Type::Text { .. } | Type::Word(_) | Type::JsonText { .. },
                Dialect::Sqlite,
            ) => custom(dialect, "json_quote(?)", [value]),
        })
    }

    /// Returns `{"__id":4}`, or null.
    fn reference(&self, link: Expr, to: &str) -> Expr {
        let Some(address) = self.addresses else {
            return self.json_or_null("'{\"__id\":' || (?) || '}'", [link]);
        };
        let deferred = format!(",\"__deferred\":{{\"uri\":\"{address}/{to}(@id)?@id=");
        self.json_or_null(
            "'{\"__id\":' || (?) || ? || (?) || '\"}}'",
            [link.clone(), Expr::val(deferred), link],
        )
    }

    /// Returns the JSON text of an expression as a value of an object, and JSON's null if it is null.
    fn json_or_null<const N: usize>(&self, text: &str, with: [Expr; N]) -> Expr {
        let json = match self.dialect {
            Dialect::Postgres => format!("CAST({text} AS json)"),
            Dialect::Sqlite => format!("coalesce({text}, 'null')"),
        };
        custom(self.dialect, &json, with)
    }
}

/// Joins JSON texts to `{"a":…,"b":…}`.
pub(super) fn object_text(fields: Vec<JsonField>) -> Expr {
    let mut pieces = Vec::with_capacity(fields.len() * 2 + 1);
    for (number, field) in fields.into_iter().enumerate() {
        let before = if number == 0 { '{' } else { ',' };
        // The names come from the request, which can use only names of the model.
        pieces.push(Expr::cust(format!("'{before}\"{}\":'", field.name)));
        pieces.push(field.value);
    }
    pieces.push(Expr::cust("'}'"));
    concat(pieces)
}

/// Concatenates texts; null counts as empty.
pub(super) fn concat(pieces: Vec<Expr>) -> Expr {
    if pieces.len() <= PIECES {
        return Expr::from(Func::cust(Alias::new("concat")).args(pieces));
    }
    let mut pieces = pieces.into_iter();
    let mut groups = Vec::new();
    loop {
        let group: Vec<Expr> = pieces.by_ref().take(PIECES).collect();
        if group.is_empty() {
            return concat(groups);
        }
        groups.push(concat(group));
    }
}
