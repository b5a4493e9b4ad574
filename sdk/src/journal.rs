//! The host's journal, as the host's journal command prints it. Capability `journal`.

use std::fmt;

use crate::Body;
use crate::bindings::capabilities::platform::supervisor::journal as wit;

/// What to print; what is `None` is left to the journal command. Values are at most 1,024 bytes and do
/// not begin with `-`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// All fields in full, long and unprintable ones too (`--all`).
    pub all: bool,
    /// Continues with later lines, until the reader disconnects (`--follow`).
    pub follow: bool,
    /// Only this unit (`--unit`).
    pub unit: Option<String>,
    /// Only this syslog identifier, which for a container is its id (`--identifier`).
    pub identifier: Option<String>,
    /// Only this number of the newest lines (`--lines`).
    pub count: Option<u64>,
    /// Only lines that are not older than this (`--since`).
    pub since: Option<String>,
    /// Only lines that are not newer than this (`--until`).
    pub until: Option<String>,
    /// The format of the output (`--output`), for example `short` or `json`.
    pub format: Option<String>,
}

/// Starts the journal command. A value that the command itself refuses gives an empty body. Returned as
/// the body of an answer, what is printed passes outside the plugin and goes on after the call has ended.
///
/// # Errors
/// [`Error::Invalid`], [`Error::Busy`], or [`Error::Failed`] if the host has no such command.
pub async fn read(options: Options) -> Result<Body, Error> {
    let Options {
        all,
        follow,
        unit,
        identifier,
        count,
        since,
        until,
        format,
    } = options;
    let stream = wit::read(wit::Options {
        all,
        follow,
        unit,
        identifier,
        count,
        since,
        until,
        format,
    })
    .await?;
    Ok(Body::of_stream(stream))
}

/// Why the journal was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An option has a value that no option can have; the text names it.
    Invalid(String),
    /// The maximum number of readers are at work.
    Busy(String),
    /// The journal command cannot be started.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(text) | Self::Busy(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<wit::JournalError> for Error {
    fn from(error: wit::JournalError) -> Self {
        match error {
            wit::JournalError::Invalid(text) => Self::Invalid(text),
            wit::JournalError::Busy(text) => Self::Busy(text),
            wit::JournalError::Other(text) => Self::Failed(text),
        }
    }
}

/// 400 for a value that cannot be one, else 503.
impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(text) => Self::bad_request(text),
            Error::Busy(text) | Error::Failed(text) => Self::unavailable(text),
        }
    }
}
