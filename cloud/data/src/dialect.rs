//! The two kinds of databases, whose statements differ.

/// Which of the databases it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A file.
    Sqlite,
    /// A server.
    Postgres,
}

impl Dialect {
    /// The database's own time in milliseconds since the epoch, as an expression that an index can be searched by.
    #[must_use]
    pub fn now(self) -> &'static str {
        match self {
            Dialect::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Dialect::Postgres => "CAST(extract(epoch FROM now()) * 1000 AS bigint)",
        }
    }

    /// The first parameter of a statement, which may stand in it more than once.
    pub(crate) fn first_parameter(self) -> &'static str {
        match self {
            Dialect::Sqlite => "?1",
            Dialect::Postgres => "$1",
        }
    }
}
