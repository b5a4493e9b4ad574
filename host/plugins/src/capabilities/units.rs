//! `wit/units.wit`: the units of the host that the policy names.

use std::sync::Arc;

use os::{OsError, UnitName};
use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::units::{self, UnitError, UnitState};
use crate::guest::{Guest, Surroundings, ThisGuest};

/// How much of a name that is not granted is given back, in characters.
const SHOWN: usize = 255;

impl units::Host for &mut Guest {}

impl units::HostWithStore<Guest> for ThisGuest {
    async fn state(accessor: &Accessor<Guest, Self>, unit: String) -> Result<UnitState, UnitError> {
        let around = accessor.with(|mut access| Arc::clone(&access.get().around));
        let unit = granted(&around, &unit)?;
        let state = around.os.unit(&unit).await;
        let state = state.map_err(|error| failed(&around, &unit, &error))?;
        Ok(UnitState {
            load_state: state.load_state,
            active_state: state.active_state,
            sub_state: state.sub_state,
        })
    }

    async fn restart(accessor: &Accessor<Guest, Self>, unit: String) -> Result<(), UnitError> {
        let around = accessor.with(|mut access| Arc::clone(&access.get().around));
        let unit = granted(&around, &unit)?;
        tracing::info!(plugin = &*around.name, "restarting the unit `{unit}`");
        let restarted = around.os.restart_unit(&unit).await;
        restarted.map_err(|error| failed(&around, &unit, &error))
    }
}

/// The unit of this name, if the policy names it for the plugin.
fn granted(around: &Surroundings, unit: &str) -> Result<UnitName, UnitError> {
    let named = around
        .grants
        .units
        .iter()
        .find(|named| named.as_str() == unit);
    named.cloned().ok_or_else(|| {
        let shown: String = unit.chars().take(SHOWN).collect();
        UnitError::NotGranted(format!(
            "the policy's `units` of `[plugins.{}]` does not name `{shown}`",
            around.name
        ))
    })
}

fn failed(around: &Surroundings, unit: &UnitName, error: &OsError) -> UnitError {
    if error.is_no_such_unit() {
        return UnitError::NotFound(format!("the host has no unit `{unit}`"));
    }
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(plugin = &*around.name, cause, "unit `{unit}`: {error}");
    UnitError::Other(error.to_string())
}
