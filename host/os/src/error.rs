//! Why the operating system did not do what it was asked.

use std::path::PathBuf;
use std::time::Duration;

/// Why the operating system did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum OsError {
    /// Nothing answers at the address of the system bus.
    #[error("the system bus at `{address}` cannot be reached")]
    Unreachable {
        /// The D-Bus address that was tried, such as `unix:path=/run/dbus/system_bus_socket`.
        address: String,
        /// Why it cannot be reached.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The bus or the service behind it took longer than it may.
    #[error("no answer within {} s to `{call}`", limit.as_secs())]
    TimedOut {
        /// What was called, as `interface.method`.
        call: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The service refused. `name` is its error's, such as `org.freedesktop.systemd1.NoSuchUnit`.
    #[error("`{call}` was refused: {message} ({name})")]
    Refused {
        /// What was called, as `interface.method`.
        call: String,
        /// The D-Bus name of the error.
        name: String,
        /// The text that came with it; where there was none, it says so.
        message: String,
    },
    /// The answer was not one that the call has.
    #[error("the answer to `{call}` cannot be read")]
    Answer {
        /// The method that was called.
        call: String,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The name that was asked for, which no host can have (hostname(7)).
    #[error("`{0}` cannot be the name of a host: up to 64 letters, digits, hyphens and dots")]
    InvalidHostName(String),
    /// A file of the host cannot be written.
    #[error("failed to write `{}`", path.display())]
    Write {
        /// The file, as this process sees it.
        path: PathBuf,
        /// What the operating system said.
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
