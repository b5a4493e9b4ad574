//! Errors of a database.

use sqlx::error::ErrorKind;

use crate::keyring::UnreadableSecret;

/// SQLite's messages for statements beyond its limits; it has no separate error code for them.
const COMPLEX: [&str; 4] = [
    "too many SQL variables",
    "Expression tree is too large",
    "parser stack overflow",
    "too many terms",
];

/// The text of the error that PostgreSQL is made to raise when a response grows too large.
pub(crate) const TOO_MUCH: &str = "answer too large: ";

/// Why a statement failed, or a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The address of a database cannot be used.
    #[error("`{url}` is not an address of a database: {reason}")]
    Address {
        /// The address as given, without its password.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The database could not be reached or opened.
    #[error("failed to open the database `{url}`")]
    Open {
        /// The address as given, without its password.
        url: String,
        /// Why.
        source: sqlx::Error,
    },
    /// The existing tables or data cannot be updated to what this program needs.
    #[error("the database does not fit this program: {0}")]
    Schema(String),
    /// Another row has these values already (docs/spec/cloud.md#odata-upsert: its words are a contract with clients).
    #[error("{} must be unique.", quoted(.fields))]
    Unique {
        /// The resource of the row.
        resource: String,
        /// The fields whose combined values are unique.
        fields: Vec<String>,
    },
    /// Other rows link to a row that was to be deleted.
    #[error("Data is referenced by {by}.")]
    Referenced {
        /// The resource of those rows.
        by: String,
    },
    /// A link refers to a row that does not exist (any more).
    #[error("\"{field}\" refers to a record that does not exist")]
    Dangling {
        /// The resource of the row with the link.
        resource: String,
        /// The link.
        field: String,
    },
    /// A foreign key is violated, and SQLite does not report which one.
    #[error("a link refers to a record that does not exist, or to one that is being deleted")]
    ForeignKey,
    /// Other transactions used the same rows; the transaction may be repeated.
    #[error("others are changing the same rows; try again")]
    Contended(#[source] sqlx::Error),
    /// No connection became free in time.
    #[error("the database is too busy; try again later")]
    Busy(#[source] sqlx::Error),
    /// A statement exceeded its time limit.
    #[error("the database needs too long for the request")]
    TooSlow(#[source] sqlx::Error),
    /// The response would be too large.
    #[error(
        "the answer is too large: a link expands to at most 10,000 records (1,000 without a credential), and a record \
         with what it expands to has at most 16 MiB; ask for fewer fields, or page the expansion by `$top` and `$skip`"
    )]
    TooLarge(#[source] sqlx::Error),
    /// The caller did not read the rows within the time limit.
    #[error("the rows were not read in time")]
    Unread,
    /// The statement has more values or parts than the database accepts in one.
    #[error(
        "the request has more values or conditions than one statement may have; split it into several"
    )]
    TooComplex(#[source] sqlx::Error),
    /// The disk has no space for the data to be written.
    #[error(
        "the disk of the database is full: nothing can be written until there is space; existing data can be read"
    )]
    Full(#[source] sqlx::Error),
    /// The connection to the database was lost.
    #[error("the connection to the database was lost")]
    Lost(#[source] sqlx::Error),
    /// The database server did not answer for this long, though the connection is open.
    #[error("the database did not respond for {} s", .0.as_secs())]
    Silent(std::time::Duration),
    /// A value of the request is outside the database's range (PostgreSQL's class 22).
    #[error("a value of the request is out of range")]
    OutOfRange(#[source] sqlx::Error),
    /// A value is null that must not be.
    #[error("`{column}` is null")]
    Null {
        /// Its column.
        column: String,
    },
    /// The given keys do not match those that the database is encrypted with.
    #[error("{0}")]
    Keys(String),
    /// A value cannot be decrypted.
    #[error(transparent)]
    Unreadable(#[from] UnreadableSecret),
    /// Nothing can be encrypted.
    #[error("the operating system provided no random numbers")]
    NoRandomNumbers(#[from] getrandom::Error),
    /// Anything else.
    #[error("a statement failed")]
    Other(#[source] sqlx::Error),
}

impl DataError {
    /// Creates the error for an inserted row whose number the database did not return.
    pub(crate) fn no_id() -> Self {
        DataError::Null {
            column: "id".to_owned(),
        }
    }

    /// Creates the error for a task that ended before its work was done.
    pub(crate) fn crashed() -> Self {
        DataError::Lost(sqlx::Error::WorkerCrashed)
    }

    /// Returns whether the same transaction, repeated from its beginning, is likely to succeed.
    #[must_use]
    pub fn may_be_tried_again(&self) -> bool {
        matches!(self, DataError::Contended(_) | DataError::Lost(_))
    }
}

/// Joins names: `"a"`, or `"a" and "b"`.
fn quoted(fields: &[String]) -> String {
    let quoted: Vec<String> = fields.iter().map(|field| format!("\"{field}\"")).collect();
    quoted.join(" and ")
}

impl From<sqlx::Error> for DataError {
    fn from(error: sqlx::Error) -> Self {
        let sqlx::Error::Database(database) = &error else {
            return match error {
                sqlx::Error::PoolTimedOut => DataError::Busy(error),
                sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::WorkerCrashed => {
                    DataError::Lost(error)
                }
                _ => DataError::Other(error),
            };
        };
        match database.kind() {
            ErrorKind::UniqueViolation => {
                unique(database.constraint(), database.table(), database.message())
                    .unwrap_or(DataError::Other(error))
            }
            ErrorKind::ForeignKeyViolation => {
                foreign_key(database.constraint(), database.message())
                    .unwrap_or(DataError::ForeignKey)
            }
            _ => match database.code().as_deref() {
                // PostgreSQL: serialization failure, deadlock. SQLite: busy, a snapshot that is too old.
                Some("40001" | "40P01" | "5" | "261" | "517" | "6" | "262") => {
                    DataError::Contended(error)
                }
                Some("57014" | "9") => DataError::TooSlow(error),
                // The server is shutting down, or is not ready yet.
                Some("57P01" | "57P02" | "57P03") => DataError::Lost(error),
                Some("53300") => DataError::Busy(error),
                // SQLite: full, and no space for the index of its log. PostgreSQL: disk full.
                Some("13" | "4874" | "53100") => DataError::Full(error),
                Some("1") if COMPLEX.iter().any(|it| database.message().contains(it)) => {
                    DataError::TooComplex(error)
                }
                // PostgreSQL's class for exceeded limits.
                Some(code) if code.len() == 5 && code.starts_with("54") => {
                    DataError::TooComplex(error)
                }
                // SQLite: a value is too long.
                Some("18") => DataError::TooLarge(error),
                Some("22007") if database.message().contains(TOO_MUCH) => {
                    DataError::TooLarge(error)
                }
                Some(code) if code.len() == 5 && code.starts_with("22") => {
                    DataError::OutOfRange(error)
                }
                _ => DataError::Other(error),
            },
        }
    }
}

/// Reads which fields must be unique. SQLite lists the columns (`UNIQUE constraint failed: a.x, a.y`); PostgreSQL gives
/// the name of the index, as defined by [`crate::names::unique_name`].
fn unique(constraint: Option<&str>, table: Option<&str>, message: &str) -> Option<DataError> {
    if let (Some(constraint), Some(table)) = (constraint, table) {
        let resource = resources::v7().resource(table)?;
        let fields = resource
            .unique
            .iter()
            .find(|fields| crate::names::unique_name(table, fields) == constraint)?;
        return Some(DataError::Unique {
            resource: table.to_owned(),
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
        });
    }
    let columns = message.strip_prefix("UNIQUE constraint failed: ")?;
    let mut resource = "";
    let mut fields = Vec::new();
    for column in columns.split(", ") {
        let (table, field) = column.split_once('.')?;
        resource = table;
        fields.push(field.to_owned());
    }
    Some(DataError::Unique {
        resource: resource.to_owned(),
        fields,
    })
}

/// Reads which link is violated from PostgreSQL's name of the foreign key, as defined by
/// [`crate::names::foreign_key_name`].
fn foreign_key(constraint: Option<&str>, message: &str) -> Option<DataError> {
    let constraint = constraint?;
    for resource in resources::v7().resources() {
        for field in &resource.fields {
            if crate::names::foreign_key_name(resource.name, field.name) != constraint {
                continue;
            }
            let (resource, field) = (resource.name.to_owned(), field.name.to_owned());
            return Some(if message.starts_with("update or delete") {
                DataError::Referenced { by: resource }
            } else {
                DataError::Dangling { resource, field }
            });
        }
    }
    None
}
