//! The volume with additional firmware for the host: services that request it by a label share one, so it belongs to no
//! app (docs/spec/device.md#extra-firmware).

use engine::{Engine, EngineError, VolumeSpec};
use model::compose::EXTRA_FIRMWARE;
use model::{Mount, ServiceConfig, VolumeConfig};

use crate::step_context::StepContext;

/// Creates it if `config` mounts it and it does not exist.
pub(crate) async fn ensure(
    context: &StepContext,
    engine: &dyn Engine,
    config: &ServiceConfig,
) -> Result<(), EngineError> {
    let is_it = |mount: &Mount| match mount {
        Mount::Volume { source, .. } => source == EXTRA_FIRMWARE,
        _ => false,
    };
    if !config.mounts.iter().any(is_it) {
        return Ok(());
    }
    let device = context.persistence.store().device_uuid();
    let config = VolumeConfig {
        driver: "local".into(),
        labels: context.branding.device_labels(device),
        ..VolumeConfig::default()
    };
    let spec = VolumeSpec {
        name: EXTRA_FIRMWARE,
        config: &config,
    };
    match engine.create_volume(&spec).await {
        // Another device on this engine has created it: it is shared.
        Err(EngineError::Conflict { .. }) => Ok(()),
        made => made,
    }
}
