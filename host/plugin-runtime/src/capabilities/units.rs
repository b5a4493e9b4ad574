//! `wit/units.wit`: the units of the host that the policy names.

use plugin_protocol::{UnitQuery, UnitRestart};

use crate::bindings::platform::supervisor::units::{self, UnitError, UnitState};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl units::Host for &mut Guest {}

impl units::HostWithStore<Guest> for GuestData {
    async fn state(access: &GuestAccess, unit: String) -> Answer<UnitState, UnitError> {
        let state = host(access).try_ask(UnitQuery { unit }).await?;
        Ok(state.map(Into::into))
    }

    async fn restart(access: &GuestAccess, unit: String) -> Answer<(), UnitError> {
        host(access).try_ask(UnitRestart { unit }).await
    }
}

mirror! { one way struct plugin_protocol::UnitState, UnitState { load_state, active_state, sub_state } }
mirror! { one way enum plugin_protocol::UnitError, UnitError { NotGranted(why), NotFound(why), Other(why) } }
