//! The two kinds of databases, whose statements differ.

/// Which of the databases it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A file.
    Sqlite,
    /// A server.
    Postgres,
}
