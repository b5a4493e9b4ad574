//! The action behind the variables `SUPERVISOR_OS_VERSION` and `SUPERVISOR_OS_BUNDLE` of a device's target state:
//! updates of an operating system that has two places to boot from.
//!
//! **To provide it**: a type that implements [`Provider`], named at `os_update` in [`crate::plugin!`], and the `boards`
//! that it is for. The host decides when each step happens, and keeps the necessary state across reboots; a provider
//! performs single steps and reports its status. Each call runs in a fresh instance. docs/os-update.md describes the
//! whole sequence, and `examples/rauc-update` is a provider for systems with RAUC.
//!
//! ```
//! use supervisor_sdk::os_update::{Provider, Status};
//! use supervisor_sdk::plugin;
//!
//! plugin! {
//!     os_update => Slots
//! }
//!
//! struct Slots;
//!
//! impl Provider for Slots {
//!     async fn status() -> Result<Status, String> {
//!         Ok(Status { running: "2026.3.1".to_owned(), committed: true, ..Status::default() })
//!     }
//!     async fn stage(_source: String, _version: String) -> Result<(), String> { Ok(()) }
//!     async fn activate() -> Result<(), String> { Ok(()) }
//!     async fn commit() -> Result<(), String> { Ok(()) }
//!     async fn roll_back() -> Result<(), String> { Ok(()) }
//! }
//! ```

use crate::bindings::os_updater::exports::platform::supervisor::os_update as wit;

#[doc(hidden)]
pub mod provide;

/// What a plugin implements to provide the action.
///
/// The texts of errors are for people, who read them in the device's plan, events and log.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not provide the action `os-update`",
    note = "implement `supervisor_sdk::os_update::Provider` for `{Self}`"
)]
pub trait Provider {
    /// Returns the status, without changing anything.
    ///
    /// # Errors
    /// A description of what cannot be read.
    fn status() -> impl Future<Output = Result<Status, String>>;

    /// Begins to install `version` from `source` (an `https://` address or an absolute path) into the place that is not
    /// running. Returns once the installation has begun: [`Self::status`] reports its progress. Does nothing if it is
    /// already in progress, and does not change what the next boot starts.
    ///
    /// # Errors
    /// The reason why the installation cannot begin, for example because the source contains another version.
    fn stage(source: String, version: String) -> impl Future<Output = Result<(), String>>;

    /// Makes the next boot start the staged version. May be called more than once.
    ///
    /// # Errors
    /// The reason why this failed.
    fn activate() -> impl Future<Output = Result<(), String>>;

    /// Makes each later boot start the running version, and ends its trial. May be called more than once.
    ///
    /// # Errors
    /// The reason why this failed.
    fn commit() -> impl Future<Output = Result<(), String>>;

    /// Makes the next boot start the predecessor of the uncommitted version: before the first boot of that version this
    /// is the running version, after it the version that ran before. May be called more than once.
    ///
    /// # Errors
    /// The reason why this failed.
    fn roll_back() -> impl Future<Output = Result<(), String>>;
}

/// The status of the operating system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The running version: up to 128 letters, digits and `.`, `-`, `+`, `_` or `~`.
    pub running: String,
    /// The version that is completely installed in the other place, whether or not the next boot starts it.
    pub staged: Option<String>,
    /// Whether the running version stays: false from its first boot until [`Provider::commit`].
    pub committed: bool,
    /// The progress of an installation, from 0 to 100, if one is running.
    pub installing: Option<u8>,
    /// The reason why the last installation failed.
    pub failure: Option<String>,
}

impl From<Status> for wit::OsStatus {
    fn from(status: Status) -> Self {
        Self {
            running: status.running,
            staged: status.staged,
            committed: status.committed,
            installing: status.installing,
            failure: status.failure,
        }
    }
}
