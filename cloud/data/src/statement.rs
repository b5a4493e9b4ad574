//! Executable statements.

use std::borrow::Cow;

use memchr::memchr3;
use sea_query::{
    DeleteStatement, InsertStatement, PostgresQueryBuilder, SelectStatement, SqliteQueryBuilder,
    UpdateStatement, Value, Values, WithQuery,
};
use sea_query_sqlx::{SqlxBinder, SqlxValues};

use crate::dialect::Dialect;

/// The maximum number of rows that one statement names; both databases accept more.
pub(crate) const AT_ONCE: usize = 2000;

/// A statement for both databases, with its values separate from its text.
///
/// Outside this crate there are three kinds, each with its own authorization: the compiled ones of [`crate::query`],
/// those about the row of a [`crate::RowRight`], and those of a [`crate::SystemPurpose`].
pub trait Statement: Sync {
    /// Returns the statement in one SQL dialect.
    fn built(&self, dialect: Dialect) -> BuiltStatement;
}

/// The text of a statement for one database, and the values of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltStatement {
    pub(crate) text: String,
    pub(crate) values: SqlxValues,
}

impl BuiltStatement {
    /// Creates a statement from a text written by hand, with the parameters of its database (`?` or `$1`). The text
    /// itself may not contain anything from a request.
    #[must_use]
    pub(crate) fn new(text: impl Into<String>, values: impl IntoIterator<Item = Value>) -> Self {
        BuiltStatement {
            text: text.into(),
            values: SqlxValues(Values(values.into_iter().collect())),
        }
    }

    /// Returns its text, for tests and logs.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns its text with the type of each value at its parameter, for PostgreSQL: `CAST($1 AS bigint)`.
    ///
    /// A connection keeps prepared statements by their text, with the types of the values at the first use. If a value
    /// of another type came later with the same text, its bits would be misread: `5` after `5.5` would be a number
    /// close to zero. With the types in it, the text differs for each type.
    pub(crate) fn typed(&self) -> String {
        let mut typed = String::with_capacity(self.text.len() + 24 * self.values.0.0.len());
        let mut rest = self.text.as_str();
        while let Some(at) = memchr3(b'$', b'\'', b'"', rest.as_bytes()) {
            let (before, found) = rest.split_at(at);
            typed.push_str(before);
            let sign = found.as_bytes().first().copied();
            let length = match sign {
                // A literal or a name: nothing in it is a parameter.
                Some(quote @ (b'\'' | b'"')) => {
                    let end = found.bytes().skip(1).position(|byte| byte == quote);
                    end.map_or(found.len(), |end| end + 2)
                }
                _ => 1 + found.bytes().skip(1).take_while(u8::is_ascii_digit).count(),
            };
            let (parameter, after) = found.split_at(length);
            let number = parameter.strip_prefix('$').and_then(|it| it.parse().ok());
            match number.and_then(|number: usize| self.values.0.0.get(number.checked_sub(1)?)) {
                Some(value) => {
                    typed.push_str("CAST(");
                    typed.push_str(parameter);
                    typed.push_str(" AS ");
                    typed.push_str(postgres_type(value));
                    typed.push(')');
                }
                None => typed.push_str(parameter),
            }
            rest = after;
        }
        typed.push_str(rest);
        typed
    }
}

/// Returns the type that a value is bound as. No other types are ever bound.
fn postgres_type(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::TinyInt(_) | Value::SmallInt(_) | Value::TinyUnsigned(_) => "smallint",
        Value::Int(_) | Value::SmallUnsigned(_) => "integer",
        Value::BigInt(_) | Value::Unsigned(_) | Value::BigUnsigned(_) => "bigint",
        Value::Float(_) => "real",
        Value::Double(_) => "double precision",
        Value::Bytes(_) => "bytea",
        _ => "text",
    }
}

impl Statement for BuiltStatement {
    fn built(&self, _: Dialect) -> BuiltStatement {
        self.clone()
    }
}

/// A statement that sea-query builds.
pub trait SeaQuery: Sync {
    /// Returns the statement in one SQL dialect.
    #[doc(hidden)]
    fn in_words_of(&self, dialect: Dialect) -> BuiltStatement;
}

/// A statement of the server itself, built by sea-query; see [`SystemPurpose::statement`](crate::SystemPurpose).
#[derive(Debug, Clone)]
pub struct SystemStatement<S>(pub(crate) S);

impl<S: SeaQuery> Statement for SystemStatement<S> {
    fn built(&self, dialect: Dialect) -> BuiltStatement {
        self.0.in_words_of(dialect)
    }
}

macro_rules! statements {
    ($($statement:ty),*) => {
        $(impl SeaQuery for $statement {
            fn in_words_of(&self, dialect: Dialect) -> BuiltStatement {
                let (text, values) = match dialect {
                    Dialect::Sqlite => self.build_sqlx(SqliteQueryBuilder),
                    Dialect::Postgres => self.build_sqlx(PostgresQueryBuilder),
                };
                BuiltStatement { text, values }
            }
        })*
    };
}

statements!(
    SelectStatement,
    InsertStatement,
    UpdateStatement,
    DeleteStatement,
    WithQuery
);

/// A statement of our own as text, the same for both databases, with a `?` for each value. A list of numbers replaces
/// its `?` within parentheses: `id IN (?)`. `now_ms()` is the database's own time, in milliseconds since the epoch:
/// replicas compare times by it, since their clocks may differ.
#[derive(Debug, Clone)]
pub struct Sql {
    text: Cow<'static, str>,
    values: Vec<Parameter>,
}

#[derive(Debug, Clone)]
enum Parameter {
    One(Value),
    Many(Vec<i64>),
}

/// Creates a statement, to which values are then added in their order. The text may not contain anything from a
/// request.
#[must_use]
pub(crate) fn sql(text: impl Into<Cow<'static, str>>) -> Sql {
    Sql {
        text: text.into(),
        values: Vec::new(),
    }
}

impl Sql {
    /// Adds the value of the next `?`.
    #[must_use]
    pub fn with(mut self, value: impl Into<Value>) -> Self {
        self.values.push(Parameter::One(value.into()));
        self
    }

    /// Adds the numbers for the next `?`; an empty list becomes a number that no row has.
    #[must_use]
    pub fn with_all<'a>(mut self, numbers: impl IntoIterator<Item = &'a i64>) -> Self {
        let mut numbers: Vec<i64> = numbers.into_iter().copied().collect();
        if numbers.is_empty() {
            numbers.push(-1);
        }
        self.values.push(Parameter::Many(numbers));
        self
    }
}

impl Statement for Sql {
    fn built(&self, dialect: Dialect) -> BuiltStatement {
        let mut text = String::with_capacity(self.text.len() + 16);
        let mut values = Vec::new();
        let mut add = |text: &mut String, value: Value| {
            values.push(value);
            match dialect {
                Dialect::Sqlite => text.push('?'),
                Dialect::Postgres => text.push_str(&format!("${}", values.len())),
            }
        };
        let mut parts = self.text.split('?');
        push_part(&mut text, parts.next().unwrap_or_default(), dialect);
        for (part, value) in parts.zip(&self.values) {
            match value {
                Parameter::One(value) => add(&mut text, value.clone()),
                Parameter::Many(numbers) => {
                    for (at, number) in numbers.iter().enumerate() {
                        if at > 0 {
                            text.push(',');
                        }
                        add(&mut text, (*number).into());
                    }
                }
            }
            push_part(&mut text, part, dialect);
        }
        debug_assert_eq!(self.text.matches('?').count(), self.values.len());
        BuiltStatement::new(text, values)
    }
}

/// The name of the database's own time in our own statements.
const NOW: &str = "now_ms()";

fn push_part(text: &mut String, part: &str, dialect: Dialect) {
    let mut rest = part;
    while let Some((before, after)) = rest.split_once(NOW) {
        text.push_str(before);
        text.push_str(dialect.now());
        rest = after;
    }
    text.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_of_postgresql_has_its_type_in_the_text() {
        let values: [Value; 5] = [5.into(), 5.5.into(), "5".into(), true.into(), 7_i64.into()];
        let built = BuiltStatement::new(
            "SELECT $1, $2, '$3 it''s $1', \"$4\" || $3 WHERE $4 AND $5 = $1 AND '$' < $9",
            values,
        );
        assert_eq!(
            built.typed(),
            "SELECT CAST($1 AS integer), CAST($2 AS double precision), '$3 it''s $1', \"$4\" || CAST($3 AS text) \
             WHERE CAST($4 AS boolean) AND CAST($5 AS bigint) = CAST($1 AS integer) AND '$' < $9"
        );
    }

    #[test]
    fn each_database_gets_its_own_signs_for_values() {
        let statement = sql("SELECT 1 WHERE 1 IN (?) AND 2 = ?")
            .with_all(&[7, 8])
            .with(9);
        assert_eq!(
            statement.built(Dialect::Sqlite).text(),
            "SELECT 1 WHERE 1 IN (?,?) AND 2 = ?"
        );
        assert_eq!(
            statement.built(Dialect::Postgres).text(),
            "SELECT 1 WHERE 1 IN ($1,$2) AND 2 = $3"
        );
    }
}
