//! The host's journal, as the host's journal command prints it. Capability `journal`.

use crate::Body;
use crate::bindings::capabilities::platform::supervisor::journal as wit;
use crate::capability_error::capability_error;

/// What to print; the journal command decides about fields that are `None`. Values are at most 1,024
/// bytes and do not begin with `-`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Print all fields in full, also long and unprintable ones (`--all`).
    pub all: bool,
    /// Continue with later lines until the reader disconnects (`--follow`).
    pub follow: bool,
    /// Only this unit (`--unit`).
    pub unit: Option<String>,
    /// Only this syslog identifier, which for a container is its id (`--identifier`).
    pub identifier: Option<String>,
    /// Only this many of the newest lines (`--lines`).
    pub count: Option<u64>,
    /// Only lines that are not older than this (`--since`).
    pub since: Option<String>,
    /// Only lines that are not newer than this (`--until`).
    pub until: Option<String>,
    /// The format of the output (`--output`), for example `short` or `json`.
    pub format: Option<String>,
}

/// Starts the journal command. If the command itself refuses a value, the body is empty. If this body is
/// returned as the body of an answer, the output does not pass through the plugin, and continues after
/// the call has ended.
///
/// # Errors
/// [`Error::Invalid`], [`Error::Busy`], or [`Error::Failed`] if the host has no such command.
pub async fn read(options: Options) -> Result<Body, Error> {
    let stream = wit::read(options.into()).await?;
    Ok(Body::from_stream(stream))
}

mirror! {
    one way struct Options, wit::Options { all, follow, unit, identifier, count, since, until, format }
}

capability_error! {
    /// The reason why the journal was refused.
    ///
    /// As a [`crate::Error`]: 400 for an invalid value, else 503.
    wit::JournalError {
        /// An option has an invalid value; the text names the option.
        Invalid from Invalid answers bad_request,
        /// The maximum number of readers is in use.
        Busy from Busy answers unavailable,
        /// The journal command cannot be started.
        Failed from Other answers unavailable,
    }
}
