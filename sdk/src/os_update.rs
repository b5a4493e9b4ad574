//! The action behind the variables `SUPERVISOR_OS_VERSION` and `SUPERVISOR_OS_BUNDLE` of a device's target state: updates of
//! an operating system that has two places to boot from.
//!
//! **To provide it**: a type that implements [`Provider`], named at `os_update` in [`crate::plugin!`], and the `boards` that
//! it is for. The host decides when something is done, and keeps what it has to know over a reboot; a provider does what it
//! is called for, and says how things are. Each call runs in a fresh instance. docs/os-update.md has the whole sequence, and
//! `examples/rauc-update` is a provider for systems with RAUC.

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
    /// Says how things are, and changes nothing.
    ///
    /// # Errors
    /// What cannot be read.
    fn status() -> impl Future<Output = Result<Status, String>>;

    /// Begins to install `version` from `source` (an `https://` address or an absolute path) into the place that does not
    /// run. Returns once the installation has begun: [`Self::status`] says how far it is. Does nothing if it is under
    /// way, and does not change what the next boot starts.
    ///
    /// # Errors
    /// Why the installation cannot begin, for example since the source holds another version.
    fn stage(source: String, version: String) -> impl Future<Output = Result<(), String>>;

    /// Has the next boot start the staged version. It may be called again.
    ///
    /// # Errors
    /// Why it does not.
    fn activate() -> impl Future<Output = Result<(), String>>;

    /// Has each later boot start the version that runs, and ends its trial. It may be called again.
    ///
    /// # Errors
    /// Why it does not.
    fn commit() -> impl Future<Output = Result<(), String>>;

    /// Has the next boot start what ran before the version that is not committed: before its first boot that is what runs,
    /// after it what ran before. It may be called again.
    ///
    /// # Errors
    /// Why it does not.
    fn roll_back() -> impl Future<Output = Result<(), String>>;
}

/// How things are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The version that runs: up to 128 letters, digits and `.`, `-`, `+`, `_` or `~`.
    pub running: String,
    /// The version that is installed whole in the other place, whether or not the next boot starts it.
    pub staged: Option<String>,
    /// Whether the version that runs stays: false from its first boot until [`Provider::commit`].
    pub committed: bool,
    /// How far an installation is that is under way, from 0 to 100.
    pub installing: Option<u8>,
    /// Why the last installation failed.
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
