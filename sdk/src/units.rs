//! The units of the host, such as its services, as its service manager knows them. Capability `units`;
//! only the units that the device's policy names for the plugin.

use std::fmt;

use crate::bindings::capabilities::platform::supervisor::units as wit;

/// The state of a unit, in the service manager's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// `loaded`, `not-found`, `masked`, ...
    pub load: String,
    /// `active`, `reloading`, `inactive`, `failed`, `activating`, `deactivating`, ...
    pub active: String,
    /// `running`, `dead`, `exited`, ...: different for each kind of unit.
    pub sub: String,
}

/// Reads the state of a unit such as `openvpn.service`. A unit that the host does not have has `not-found` as its
/// load state, which is no error.
///
/// # Errors
/// [`Error::NotGranted`], or [`Error::Failed`] if the service manager does not answer.
pub async fn state(unit: &str) -> Result<State, Error> {
    let wit::UnitState {
        load_state,
        active_state,
        sub_state,
    } = wit::state(unit.to_owned()).await?;
    Ok(State {
        load: load_state,
        active: active_state,
        sub: sub_state,
    })
}

/// Restarts a unit, or starts it if it is stopped. Returns when the service manager has taken the job,
/// which is before the unit is up.
///
/// # Errors
/// [`Error::NotGranted`], [`Error::NotFound`], or [`Error::Failed`] if the service manager does not
/// answer or refuses.
pub async fn restart(unit: &str) -> Result<(), Error> {
    Ok(wit::restart(unit.to_owned()).await?)
}

/// Why a unit was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The policy does not name the unit for this plugin.
    NotGranted(String),
    /// The host has no such unit.
    NotFound(String),
    /// The service manager did not answer, or refused.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted(text) | Self::NotFound(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<wit::UnitError> for Error {
    fn from(error: wit::UnitError) -> Self {
        match error {
            wit::UnitError::NotGranted(text) => Self::NotGranted(text),
            wit::UnitError::NotFound(text) => Self::NotFound(text),
            wit::UnitError::Other(text) => Self::Failed(text),
        }
    }
}

/// 404 if the host has no such unit, else 500.
impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(text) => Self::not_found(text),
            Error::NotGranted(text) | Error::Failed(text) => Self::internal(text),
        }
    }
}
