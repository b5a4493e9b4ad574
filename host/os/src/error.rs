//! Why the operating system did not do what it was asked.

use std::path::PathBuf;
use std::time::Duration;

/// Why the operating system did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum OsError {
    /// Nothing answers at the address of the system bus.
    #[error("the system bus at `{address}` cannot be reached")]
    Unreachable {
        address: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The bus or the service behind it took longer than it may.
    #[error("no answer within {} s to `{call}`", limit.as_secs())]
    TimedOut { call: String, limit: Duration },
    /// The service refused. `name` is its error's, such as `org.freedesktop.systemd1.NoSuchUnit`.
    #[error("`{call}` was refused: {message} ({name})")]
    Refused {
        call: String,
        name: String,
        message: String,
    },
    /// The answer was not one that the call has.
    #[error("the answer to `{call}` cannot be read")]
    Answer {
        call: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("`{0}` cannot be the name of a host: up to 64 letters, digits, hyphens and dots")]
    InvalidHostName(String),
    #[error("failed to write `{}`", path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl OsError {
    /// Whether systemd said that it has no such unit.
    #[must_use]
    pub fn is_no_such_unit(&self) -> bool {
        matches!(self, OsError::Refused { name, .. } if name == "org.freedesktop.systemd1.NoSuchUnit")
    }
}
