//! The [`HostOs`] trait.

use futures::future::BoxFuture;

use crate::{OsError, UnitName};

/// What the supervisor asks of the host's operating system. Each call has a time limit of its own; none
/// asks a person, and none is repeated by itself once the system has taken it.
pub trait HostOs: Send + Sync {
    /// Where actions go, for the log.
    fn describe(&self) -> String;

    /// Begins to reboot. Answers when the system has agreed, which is before services are gone.
    fn reboot(&self) -> BoxFuture<'_, Result<(), OsError>>;

    /// Begins to power off, as [`HostOs::reboot`].
    fn power_off(&self) -> BoxFuture<'_, Result<(), OsError>>;

    /// The state of a unit. One that the system does not have is no error: its `load_state` is
    /// `not-found`.
    fn unit<'a>(&'a self, unit: &'a UnitName) -> BoxFuture<'a, Result<UnitState, OsError>>;

    /// Starts a unit; answers when the job is accepted, not when the unit is up.
    fn start_unit<'a>(&'a self, unit: &'a UnitName) -> BoxFuture<'a, Result<(), OsError>>;

    /// Stops a unit; answers when the job is accepted.
    fn stop_unit<'a>(&'a self, unit: &'a UnitName) -> BoxFuture<'a, Result<(), OsError>>;

    /// Restarts a unit, or starts it if it is stopped; answers when the job is accepted.
    fn restart_unit<'a>(&'a self, unit: &'a UnitName) -> BoxFuture<'a, Result<(), OsError>>;

    /// Names the host, now and after a reboot.
    ///
    /// # Errors
    /// [`OsError::InvalidHostName`] before anything is changed.
    fn set_host_name<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), OsError>>;
}

/// A unit as systemd describes it, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitState {
    /// `loaded`, `not-found`, `masked`, `error`, `bad-setting`, ...
    pub load_state: String,
    /// `active`, `reloading`, `inactive`, `failed`, `activating`, `deactivating`, ...
    pub active_state: String,
    /// Finer, and different for each kind of unit: `running`, `dead`, `exited`, ...
    pub sub_state: String,
}

impl UnitState {
    /// A state in systemd's own words, for `LoadState`, `ActiveState` and `SubState`.
    #[must_use]
    pub fn new(load_state: &str, active_state: &str, sub_state: &str) -> Self {
        UnitState {
            load_state: load_state.into(),
            active_state: active_state.into(),
            sub_state: sub_state.into(),
        }
    }

    /// Of a unit that the system does not have.
    #[must_use]
    pub fn not_found() -> Self {
        UnitState::new("not-found", "inactive", "dead")
    }

    /// Whether systemd has read the unit's file: it is neither missing, masked nor broken.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.load_state == "loaded"
    }
}
