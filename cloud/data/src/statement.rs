//! What can be executed.

use sea_query::{
    DeleteStatement, InsertStatement, PostgresQueryBuilder, SelectStatement, SqliteQueryBuilder,
    UpdateStatement, Value, Values, WithQuery,
};
use sea_query_sqlx::{SqlxBinder, SqlxValues};

use crate::database::Dialect;

/// A statement that both databases take, with its values apart from its text.
pub trait Statement: Sync {
    /// It, in the words of one of them.
    fn built(&self, dialect: Dialect) -> Built;
}

/// The text of a statement for one database, and the values of its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    pub(crate) text: String,
    pub(crate) values: SqlxValues,
}

impl Built {
    /// A text written by hand, with the parameters of its database (`?` or `$1`). Nothing that a request
    /// says may be in the text itself.
    #[must_use]
    pub fn new(text: impl Into<String>, values: impl IntoIterator<Item = Value>) -> Self {
        Built {
            text: text.into(),
            values: SqlxValues(Values(values.into_iter().collect())),
        }
    }

    /// Its text, for tests and logs.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Statement for Built {
    fn built(&self, _: Dialect) -> Built {
        self.clone()
    }
}

macro_rules! statements {
    ($($statement:ty),*) => {
        $(impl Statement for $statement {
            fn built(&self, dialect: Dialect) -> Built {
                let (text, values) = match dialect {
                    Dialect::Sqlite => self.build_sqlx(SqliteQueryBuilder),
                    Dialect::Postgres => self.build_sqlx(PostgresQueryBuilder),
                };
                Built { text, values }
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
