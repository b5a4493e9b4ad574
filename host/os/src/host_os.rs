//! The [`HostOs`] trait.

use futures::future::BoxFuture;

use crate::{OsError, UnitName};

/// The operations of the host's operating system that the supervisor uses. Each call has its own time limit; none asks
/// a person, and none is repeated automatically once the system has accepted it.
pub trait HostOs: Send + Sync {
    /// Says how actions are performed, for the log.
    fn describe(&self) -> String;

    /// Begins an action. Returns when the system has agreed, which is before services have stopped or a unit has
    /// started.
    ///
    /// # Errors
    /// [`OsError`]; [`OsError::InvalidHostName`] before anything is changed.
    fn act(&self, action: Action) -> BoxFuture<'_, Result<(), OsError>>;

    /// Returns the state of a unit. A unit that the system does not have is not an error: its `load_state` is
    /// `not-found`.
    fn unit<'a>(&'a self, unit: &'a UnitName) -> BoxFuture<'a, Result<UnitState, OsError>>;

    /// Calls a method of a service on the system bus, and returns the values of its answer as a JSON array.
    ///
    /// # Errors
    /// [`MethodError`].
    fn call_method<'a>(
        &'a self,
        call: &'a MethodCall,
    ) -> BoxFuture<'a, Result<String, MethodError>>;
}

/// A method of a service on the system bus. The values are JSON, in the form that `wit/dbus.wit` describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodCall {
    /// The service's name, such as `org.freedesktop.hostname1`.
    pub service: String,
    /// The path of the object.
    pub path: String,
    /// The method's interface.
    pub interface: String,
    /// The method's name.
    pub member: String,
    /// The types of the arguments.
    pub signature: String,
    /// The arguments, a JSON array.
    pub arguments: String,
    /// The longest answer, in bytes of D-Bus and of JSON.
    pub longest_answer: usize,
}

/// Why a method was not called, or did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// The call is invalid and cannot be made.
    #[error("{0}")]
    Invalid(String),
    /// The service returned an error.
    #[error("{message} ({name})")]
    Refused {
        /// The D-Bus name of the error.
        name: String,
        /// The text of the error.
        message: String,
    },
    /// The bus or the service does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// The answer is too long, or cannot be represented in JSON.
    #[error("{0}")]
    Unreadable(String),
}

/// An action on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Reboots the host.
    Reboot,
    /// Switches the host off.
    PowerOff,
    /// Starts this unit.
    Start(UnitName),
    /// Stops this unit.
    Stop(UnitName),
    /// Stops this unit if it is running, and starts it.
    Restart(UnitName),
    /// Gives the host this name, now and after a reboot.
    SetHostName(String),
}

/// A unit as systemd describes it, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitState {
    /// `loaded`, `not-found`, `masked`, `error`, `bad-setting`, ...
    pub load_state: String,
    /// `active`, `reloading`, `inactive`, `failed`, `activating`, `deactivating`, ...
    pub active_state: String,
    /// More detailed, and different for each kind of unit: `running`, `dead`, `exited`, ...
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

    /// The state of a unit that the system does not have.
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
