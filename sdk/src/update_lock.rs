//! The update locks of the device's apps: by these apps keep their services from being disturbed, and the
//! supervisor keeps its operations apart. Capability `update_lock`.

use crate::bindings::capabilities::platform::supervisor::update_lock as wit;
use crate::capability_error::capability_error;

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

capability_error! {
    /// Why the locks were not taken.
    ///
    /// As a [`crate::Error`]: 423 or 503.
    wit::LockError {
        /// An app holds one, or another operation of the supervisor does; the text says which.
        Locked from Locked answers locked,
        /// The locks could not be taken.
        Failed from Other answers unavailable,
    }
}
