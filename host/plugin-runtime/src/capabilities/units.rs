//! `wit/units.wit`: the units of the host that the policy names.

use plugin_protocol::{UnitQuery, UnitRestart};
use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::units::{self, UnitError, UnitState};
use crate::guest::{Guest, ThisGuest, host};

impl units::Host for &mut Guest {}

impl units::HostWithStore<Guest> for ThisGuest {
    async fn state(
        accessor: &Accessor<Guest, Self>,
        unit: String,
    ) -> wasmtime::Result<Result<UnitState, UnitError>> {
        let answer = host(accessor).ask(UnitQuery { unit }).await?;
        let state = answer.map(|state| UnitState {
            load_state: state.load_state,
            active_state: state.active_state,
            sub_state: state.sub_state,
        });
        Ok(state.map_err(Into::into))
    }

    async fn restart(
        accessor: &Accessor<Guest, Self>,
        unit: String,
    ) -> wasmtime::Result<Result<(), UnitError>> {
        let answer = host(accessor).ask(UnitRestart { unit }).await?;
        Ok(answer.map_err(Into::into))
    }
}

impl From<plugin_protocol::UnitError> for UnitError {
    fn from(error: plugin_protocol::UnitError) -> UnitError {
        match error {
            plugin_protocol::UnitError::NotGranted(why) => UnitError::NotGranted(why),
            plugin_protocol::UnitError::NotFound(why) => UnitError::NotFound(why),
            plugin_protocol::UnitError::Other(why) => UnitError::Other(why),
        }
    }
}
