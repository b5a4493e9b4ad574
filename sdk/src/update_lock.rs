//! The update locks of the device's apps. Apps use them to keep their services from being disturbed, and the
//! supervisor uses them so that its operations do not overlap. Capability `update_lock`.

use crate::bindings::capabilities::platform::supervisor::update_lock as wit;
use crate::capability_error::capability_error;

/// The locks of all apps. They are released when this is dropped, also when the plugin traps or runs out of time.
#[derive(Debug)]
#[must_use = "the locks are released as soon as this is dropped"]
pub struct AllLocks(#[expect(dead_code, reason = "held for its drop")] wit::Lock);

impl AllLocks {
    /// Takes the locks of all services of all apps, or none. Waits up to 10 s for other operations of the
    /// supervisor (so the plugin needs a `wall_ms` above the default), but not for apps. With `force`, or if the
    /// device's configuration overrides locks, locks that apps hold are removed permanently.
    ///
    /// # Errors
    /// [`Error::Locked`] if somebody holds one.
    pub async fn acquire(force: bool) -> Result<Self, Error> {
        Ok(Self(wit::Lock::acquire_all(force).await?))
    }
}

capability_error! {
    /// The reason why the locks were not acquired.
    ///
    /// As a [`crate::Error`]: 423 or 503.
    wit::LockError {
        /// An app holds one, or another operation of the supervisor does; the text says which.
        Locked from Locked answers locked,
        /// The locks could not be taken.
        Failed from Other answers unavailable,
    }
}
