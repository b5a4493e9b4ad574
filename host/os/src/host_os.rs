//! The [`HostOs`] trait.

use futures::future::BoxFuture;

use crate::{OsError, UnitName};

/// What the supervisor asks of the host's operating system. Each call has a time limit of its own; none
/// asks a person, and none is repeated by itself once the system has taken it.
pub trait HostOs: Send + Sync {
    /// Where actions go, for the log.
    fn describe(&self) -> String;

    /// Begins to do it. Answers when the system has agreed, which is before services are gone or a unit is up.
    ///
    /// # Errors
    /// [`OsError`]; [`OsError::InvalidHostName`] before anything is changed.
    fn act(&self, action: Action) -> BoxFuture<'_, Result<(), OsError>>;

    /// The state of a unit. One that the system does not have is no error: its `load_state` is
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
    /// The object.
    pub path: String,
    /// The method's interface.
    pub interface: String,
    /// The method's name.
    pub member: String,
    /// The types of the arguments.
    pub signature: String,
    /// A JSON array.
    pub arguments: String,
    /// The longest answer, in bytes of D-Bus and of JSON.
    pub longest_answer: usize,
}

/// Why a method was not called, or did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// It is no call that can be made.
    #[error("{0}")]
    Invalid(String),
    /// The service's own error.
    #[error("{message} ({name})")]
    Refused {
        /// The D-Bus name of the error.
        name: String,
        /// The text that came with it.
        message: String,
    },
    /// The bus or the service does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// The answer is too long, or has no form in JSON.
    #[error("{0}")]
    Unreadable(String),
}

/// What is done to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The host is started anew.
    Reboot,
    /// The host is switched off.
    PowerOff,
    /// This unit is started.
    Start(UnitName),
    /// This unit is stopped.
    Stop(UnitName),
    /// This unit is stopped where it runs, and started.
    Restart(UnitName),
    /// The host gets this name, now and after a reboot.
    SetHostName(String),
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
