//! The units of the host that the policy names.

use os::{Action, OsError, UnitName};
use plugin_protocol::wit::units::{Host, UnitError, UnitState};

use super::InstanceCall;

/// How much of a name that is not granted is returned, in characters.
const SHOWN: usize = 255;

impl Host for InstanceCall<'_> {
    async fn state(&self, unit: String) -> Result<UnitState, UnitError> {
        let unit = self.granted_unit(&unit)?;
        let state = self.plugin.services.os.unit(&unit).await;
        let state = state.map_err(|error| self.failed_unit(&unit, &error))?;
        Ok(UnitState {
            load_state: state.load_state,
            active_state: state.active_state,
            sub_state: state.sub_state,
        })
    }

    async fn restart(&self, unit: String) -> Result<(), UnitError> {
        let unit = self.granted_unit(&unit)?;
        if self.plugin.share.log.restarts.take(&self.plugin.name) {
            tracing::info!(plugin = &*self.plugin.name, %unit, "restarting the unit `{unit}`");
        }
        let restarted = self
            .plugin
            .services
            .os
            .act(Action::Restart(unit.clone()))
            .await;
        restarted.map_err(|error| self.failed_unit(&unit, &error))
    }
}

impl InstanceCall<'_> {
    /// Returns the unit of this name if the policy names it for the plugin.
    fn granted_unit(&self, unit: &str) -> Result<UnitName, UnitError> {
        let mut named = self.plugin.grants.units.iter();
        let named = named.find(|named| named.as_str() == unit);
        named.cloned().ok_or_else(|| {
            let excerpt: String = unit.chars().take(SHOWN).collect();
            UnitError::NotGranted(format!(
                "the policy's `units` of `[plugins.{}]` does not name `{excerpt}`",
                self.plugin.name
            ))
        })
    }

    fn failed_unit(&self, unit: &UnitName, error: &OsError) -> UnitError {
        if error.is_no_such_unit() {
            return UnitError::NotFound(format!("the host has no unit `{unit}`"));
        }
        if self.plugin.may_log() {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            tracing::warn!(plugin = &*self.plugin.name, %unit, cause, "unit `{unit}`: {error}");
        }
        UnitError::Other(error.to_string())
    }
}
