//! The host's journal, as the host's journal command prints it. Capability `journal`.

use crate::Body;
use crate::bindings::capabilities::platform::supervisor::journal as wit;
use crate::capability_error::capability_error;

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
    let stream = wit::read(options.into()).await?;
    Ok(Body::of_stream(stream))
}

mirror! {
    one way struct Options, wit::Options { all, follow, unit, identifier, count, since, until, format }
}

capability_error! {
    /// Why the journal was refused.
    ///
    /// As a [`crate::Error`]: 400 for a value that cannot be one, else 503.
    wit::JournalError {
        /// An option has a value that no option can have; the text names it.
        Invalid from Invalid answers bad_request,
        /// The maximum number of readers are at work.
        Busy from Busy answers unavailable,
        /// The journal command cannot be started.
        Failed from Other answers unavailable,
    }
}
