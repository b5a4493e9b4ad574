//! The two kinds of databases, and their SQL dialects.

/// The kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// SQLite, in a file.
    Sqlite,
    /// PostgreSQL, on a server.
    Postgres,
}

impl Dialect {
    /// Returns an expression for the database's own time in milliseconds since the epoch, which can be compared with an
    /// index.
    #[must_use]
    pub fn now(self) -> &'static str {
        match self {
            Dialect::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Dialect::Postgres => "CAST(extract(epoch FROM now()) * 1000 AS bigint)",
        }
    }

    /// Returns the first parameter of a statement, which may occur in it more than once.
    pub(crate) fn first_parameter(self) -> &'static str {
        match self {
            Dialect::Sqlite => "?1",
            Dialect::Postgres => "$1",
        }
    }
}
