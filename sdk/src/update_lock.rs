//! The update locks of the device's apps: by these apps keep their services from being disturbed, and the
//! supervisor keeps its operations apart. Capability `update_lock`.

use std::fmt;

use crate::bindings::capabilities::platform::supervisor::update_lock as wit;

/// The locks of all apps. They are released when this is dropped, also when the plugin traps or runs out of time.
#[derive(Debug)]
#[must_use = "the locks are released as soon as this is dropped"]
pub struct AllLocks(#[expect(dead_code, reason = "held for its drop")] wit::Lock);

impl AllLocks {
    /// Takes the locks of all services of all apps, or none. Waits up to 10 s for other operations of the
    /// supervisor (so that the plugin needs a `wall_ms` above the default), and for no app. With `force`,
    /// or if the device's configuration overrides locks, those that apps hold are removed for good.
    ///
    /// # Errors
    /// [`Error::Locked`] if somebody holds one.
    pub async fn acquire(force: bool) -> Result<Self, Error> {
        Ok(Self(wit::Lock::acquire_all(force).await?))
    }
}

/// Why the locks were not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An app holds one, or another operation of the supervisor does; the text says which.
    Locked(String),
    /// The locks could not be taken.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<wit::LockError> for Error {
    fn from(error: wit::LockError) -> Self {
        match error {
            wit::LockError::Locked(text) => Self::Locked(text),
            wit::LockError::Other(text) => Self::Failed(text),
        }
    }
}

/// 423 or 503.
impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Locked(text) => Self::locked(text),
            Error::Failed(text) => Self::unavailable(text),
        }
    }
}
