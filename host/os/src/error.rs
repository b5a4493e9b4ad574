//! Why the operating system did not do what was requested.

use std::path::PathBuf;
use std::time::Duration;

/// Why the operating system did not do what was requested.
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
    /// The bus or the service behind it exceeded its time limit.
    #[error("no answer within {} s to `{call}`", limit.as_secs())]
    TimedOut {
        /// What was called, as `interface.method`.
        call: String,
        /// The time limit.
        limit: Duration,
    },
    /// The service refused. `name` is the name of its error, such as
    /// `org.freedesktop.systemd1.NoSuchUnit`.
    #[error("`{call}` was refused: {message} ({name})")]
    Refused {
        /// What was called, as `interface.method`.
        call: String,
        /// The D-Bus name of the error.
        name: String,
        /// The text of the error, or a remark that it had none.
        message: String,
    },
    /// The answer does not have the form that the call prescribes.
    #[error("the answer to `{call}` cannot be read")]
    Answer {
        /// The method that was called.
        call: String,
        /// What is wrong with the answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The requested name is not a valid host name (hostname(7)).
    #[error("`{0}` cannot be the name of a host: up to 64 letters, digits, hyphens and dots")]
    InvalidHostName(String),
    /// A file of the host cannot be written.
    #[error("failed to write `{}`", path.display())]
    Write {
        /// The file, as this process sees it.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

impl OsError {
    /// Whether systemd reported that it has no such unit.
    #[must_use]
    pub fn is_no_such_unit(&self) -> bool {
        matches!(self, OsError::Refused { name, .. } if name == "org.freedesktop.systemd1.NoSuchUnit")
    }
}
