//! Taking a local target: checked whole, stored, and only then what the device is measured by.

use std::sync::Arc;
use std::time::Duration;

use model::compose::{DeviceFacts, Resolved, resolve};
use model::{LocalDefaults, TargetErrors, TargetState, config_variables, truthy_text};
use serde_json::Value;
use store::Store;

use crate::messages::Settings;

/// The variable by which a posted target leaves local mode.
const LOCAL_MODE: &str = "SUPERVISOR_LOCAL_MODE";

/// Why a local target was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SetTargetError {
    #[error("Target state can only set when device is in local mode")]
    NotLocalMode,
    #[error(transparent)]
    Invalid(TargetErrors),
    /// It could not be stored, or a service's key could not be had.
    #[error("failed to keep the target state: {0}")]
    Store(String),
}

/// A target that was read and resolved.
pub(crate) struct Read {
    pub target: Arc<TargetState>,
    pub resolved: Resolved,
}

/// Reads and resolves a local target. Blocks on the store for services' keys.
pub(crate) fn read(
    body: &Value,
    facts: &DeviceFacts,
    store: &Store,
) -> Result<Read, SetTargetError> {
    let target = TargetState::from_local_json(body, &defaults(facts));
    let target = target.map_err(SetTargetError::Invalid)?;
    let resolved = resolve(&target, facts, store);
    let resolved =
        resolved.map_err(|error| SetTargetError::Store(crate::observe::chain(&error)))?;
    if let Some(problems) = resolved.problems() {
        return Err(SetTargetError::Invalid(problems));
    }
    Ok(Read {
        target: Arc::new(target),
        resolved,
    })
}

/// The target of a device that was given none.
pub(crate) fn none(facts: &DeviceFacts) -> TargetState {
    TargetState {
        name: facts.name.clone(),
        ..TargetState::default()
    }
}

/// What the target's variables say to the loop.
pub(crate) fn settings(target: &TargetState) -> Settings {
    let interval = config_variables::number(&target.config, "SUPERVISOR_POLL_INTERVAL");
    Settings {
        override_locks: config_variables::flag(&target.config, "SUPERVISOR_OVERRIDE_LOCK"),
        // Below a second it would be no wait at all.
        poll_interval: Duration::from_millis(u64::try_from(interval).unwrap_or(0).max(1000)),
    }
}

/// Whether the target says that local mode is over. One that says nothing does not, though the
/// variable's default is false: it was set in local mode.
pub(crate) fn leaves_local_mode(target: &TargetState) -> bool {
    let value = target.config.get(LOCAL_MODE);
    value.is_some_and(|value| !truthy_text(value))
}

fn defaults(facts: &DeviceFacts) -> LocalDefaults {
    LocalDefaults {
        device_name: facts.name.clone(),
        branding: facts.branding.clone(),
    }
}
