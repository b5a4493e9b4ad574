//! Creation and removal of volumes and networks.

use engine::{EngineError, NetworkSpec, VolumeSpec};
use model::EngineKind;
use plan::{ComponentKind, DesiredComponent};

use super::StepResult;
use crate::definitions;
use crate::step_context::StepContext;
use crate::view::{Effect, component_of};

pub(super) async fn create(
    context: &StepContext,
    engine: EngineKind,
    component: &DesiredComponent,
) -> StepResult {
    let (kind, name) = (component.kind(), component.engine_name());
    context
        .define(definitions::define_component(component))
        .await?;
    context.log(format!("Creating {kind} '{name}'"));
    let api = context.engine(engine)?;
    let (created, labels) = match component {
        DesiredComponent::Volume(volume) => {
            let config = &volume.config;
            let created = api.create_volume(&VolumeSpec { name, config }).await;
            (created, &config.labels)
        }
        DesiredComponent::Network(network) => {
            let config = &network.config;
            let created = api.create_network(&NetworkSpec { name, config }).await;
            (created, &config.labels)
        }
    };
    match created {
        Ok(()) => {}
        // The network of the API may be shared with another supervisor on this machine.
        Err(EngineError::Conflict { .. })
            if kind == ComponentKind::Network && name == context.branding.network =>
        {
            context.effect(Effect::ApiNetworkIsShared(engine));
            return Ok(());
        }
        Err(error) => return Err(context.failed(&format!("create {kind} '{name}'"), &error)),
    }
    let made = component_of(&context.branding, engine, name, labels);
    context.effect(Effect::ComponentMade(kind, made));
    Ok(())
}

pub(super) async fn remove(
    context: &StepContext,
    engine: EngineKind,
    kind: ComponentKind,
    name: String,
) -> StepResult {
    context.log(format!("Removing {kind} '{name}'"));
    let api = context.engine(engine)?;
    let removed = match kind {
        ComponentKind::Volume => api.remove_volume(&name).await,
        ComponentKind::Network => api.remove_network(&name).await,
    };
    removed.map_err(|error| context.failed(&format!("remove {kind} '{name}'"), &error))?;
    context.effect(Effect::ComponentRemoved(kind, engine, name));
    Ok(())
}
