//! The units of the host, such as its services, as the host's service manager knows them. Capability `units`;
//! only for the units that the device's policy grants to the plugin.

use crate::bindings::capabilities::platform::supervisor::units as wit;
use crate::capability_error::capability_error;

/// The state of a unit, in the service manager's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// `loaded`, `not-found`, `masked`, ...
    pub load: String,
    /// `active`, `reloading`, `inactive`, `failed`, `activating`, `deactivating`, ...
    pub active: String,
    /// `running`, `dead`, `exited`, ...: depends on the kind of unit.
    pub sub: String,
}

/// Reads the state of a unit such as `openvpn.service`. If the host has no such unit, its load state is
/// `not-found`; this is not an error.
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

/// Restarts a unit, or starts it if it is stopped. Returns when the service manager has accepted the job, before
/// the unit has started.
///
/// # Errors
/// [`Error::NotGranted`], [`Error::NotFound`], or [`Error::Failed`] if the service manager does not answer, or
/// refuses.
pub async fn restart(unit: &str) -> Result<(), Error> {
    Ok(wit::restart(unit.to_owned()).await?)
}

capability_error! {
    /// The reason why a unit was refused.
    ///
    /// As a [`crate::Error`]: 404 if the host has no such unit, else 500.
    wit::UnitError {
        /// The policy does not grant the unit to this plugin.
        NotGranted from NotGranted answers internal,
        /// The host has no such unit.
        NotFound from NotFound answers not_found,
        /// The service manager did not answer, or refused.
        Failed from Other answers internal,
    }
}
