//! Containers of services: created, started, renamed, stopped and removed.

use std::time::Duration;

use engine::{ContainerSpec, EngineError};
use model::{AppId, BOOT_LABEL, Container, ContainerState, ServiceKey, ServiceState, error_chain};
use plan::{ContainerRef, StartService};

use super::StepResult;
use crate::messages::{Message, StepFailure, StoredRecord};
use crate::step_context::StepContext;
use crate::view::{Effect, NETWORK_CONTAINER_LABEL};
use crate::{UpdateLocks, definitions, extra_firmware};

pub(super) async fn start_existing(
    context: &StepContext,
    app_id: AppId,
    service: &ServiceKey,
    container: &ContainerRef,
) -> StepResult {
    let name = &service.service;
    // The folder that is mounted into it may have disappeared with a reboot.
    let service_name = name.clone();
    let prepared = context
        .locks
        .blocking(move |locks| locks.prepare(app_id, &service_name));
    if let Some(Err(error)) = prepared.await {
        tracing::warn!(%error, service = %name, "failed to make the lock folder of `{name}`");
    }
    context.service_is(service, ServiceState::Starting);
    context.log(format!("Starting service '{name}'"));
    let started = context
        .engine(container.engine)?
        .start_container(&container.id)
        .await;
    started.map_err(|error| start_failure(context, service, container, &error))?;
    // From now on its restart policy applies again: if it exits at once, it is not started once more.
    let not_stopped = StoredRecord::NotStopped(container.id.clone());
    if let Err(why) = context.record(not_stopped.clone()).await {
        tracing::warn!(container = %container.id, "failed to delete the record that `{}` was stopped: {why}", container.id);
        context.send(Message::Stored(not_stopped));
    }
    container_is(context, container, ContainerState::Running);
    context.log(format!("Started service '{name}'"));
    Ok(())
}

pub(super) async fn stop(
    context: &StepContext,
    service: &ServiceKey,
    container: &ContainerRef,
    grace: Duration,
    _locks: &UpdateLocks,
) -> StepResult {
    let name = &service.service;
    remember_stop(context, service, container).await?;
    context.log(format!("Stopping service '{name}'"));
    let stopped = context
        .engine(container.engine)?
        .stop_container(&container.id, grace)
        .await;
    stopped.map_err(|error| context.failed(&format!("stop service '{name}'"), &error))?;
    container_is(context, container, ContainerState::Exited);
    context.log(format!("Stopped service '{name}'"));
    Ok(())
}

pub(super) async fn kill(
    context: &StepContext,
    service: &ServiceKey,
    container: &ContainerRef,
    grace: Duration,
    _locks: &UpdateLocks,
) -> StepResult {
    let name = &service.service;
    // Between the stop and the removal, the target may return to the configuration of this container: then it must be
    // started again, which never happens to a container that exited by itself.
    remember_stop(context, service, container).await?;
    context.log(format!("Killing service '{name}'"));
    let engine = context.engine(container.engine)?;
    let killed = async {
        engine.stop_container(&container.id, grace).await?;
        engine.remove_container(&container.id).await
    };
    let killed = killed.await;
    killed.map_err(|error| context.failed(&format!("kill service '{name}'"), &error))?;
    context.effect(Effect::ContainerRemoved(
        container.engine,
        container.id.clone(),
    ));
    context.log(format!("Killed service '{name}'"));
    context.moments.reached("killed-not-started");
    Ok(())
}

pub(super) async fn rename(
    context: &StepContext,
    service: &ServiceKey,
    container: &ContainerRef,
    name: String,
    _locks: &UpdateLocks,
) -> StepResult {
    let renamed = context
        .engine(container.engine)?
        .rename_container(&container.id, &name)
        .await;
    let what = format!("rename service '{}'", service.service);
    renamed.map_err(|error| context.failed(&what, &error))?;
    context.effect(Effect::ContainerNamed(
        container.engine,
        container.id.clone(),
        name,
    ));
    context.moments.reached("renamed");
    Ok(())
}

pub(super) async fn create_and_start(
    context: &StepContext,
    start: StartService,
    _locks: &UpdateLocks,
) -> StepResult {
    let StartService {
        engine: kind,
        service,
        image,
        network_container,
        starts_after,
    } = start;
    let engine = context.engine(kind)?;
    let label = format!("'{} {}'", service.key.service, service.config.image);
    context.service_is(&service.key, ServiceState::Installing);
    context.log(format!("Installing service {label}"));
    context
        .define(definitions::define_service(&service))
        .await?;
    let name = service.container_name();
    let mut config = service.config;
    if let Some(container) = &network_container {
        let label = context.branding.label(NETWORK_CONTAINER_LABEL);
        config.labels.insert(label, container.to_string());
    }
    if let Some(boot) = &starts_after {
        let label = context.branding.label(BOOT_LABEL);
        config.labels.insert(label, boot.to_string());
    }
    let spec = ContainerSpec {
        name: &name,
        config: &config,
        init_environment: &service.init_environment,
        image_id: &image,
        network_container: network_container.as_ref(),
    };
    let created = async {
        extra_firmware::ensure(context, engine.as_ref(), spec.config).await?;
        engine.create_container(&spec).await
    };
    let created = created.await;
    let created =
        created.map_err(|error| context.failed(&format!("install service {label}"), &error))?;
    for warning in &created.warnings {
        context.log(format!("Warning for service {label}: {warning}"));
    }
    let container = ContainerRef {
        engine: kind,
        id: created.id,
    };
    context.effect(Effect::ContainerMade(Container {
        engine: kind,
        id: container.id.clone(),
        name,
        labels: config.labels,
        image: config.image.to_string(),
        image_id: image,
        state: ContainerState::Created,
        exit_code: None,
        health: None,
        created_at_ms: crate::clock::now_ms(),
    }));
    context.moments.reached("after-create");
    if !service.running || starts_after.is_some() {
        context.log(format!("Installed service {label}"));
        return Ok(());
    }
    context.service_is(&service.key, ServiceState::Starting);
    context.log(format!("Starting service {label}"));
    let started = engine.start_container(&container.id).await;
    started.map_err(|error| start_failure(context, &service.key, &container, &error))?;
    container_is(context, &container, ContainerState::Running);
    context.log(format!("Started service {label}"));
    Ok(())
}

/// Records that the supervisor stops a container, before it does so.
async fn remember_stop(
    context: &StepContext,
    service: &ServiceKey,
    container: &ContainerRef,
) -> StepResult {
    let stopped = StoredRecord::Stopped(container.id.clone());
    context.record(stopped).await?;
    context.service_is(service, ServiceState::Stopping);
    Ok(())
}

fn container_is(context: &StepContext, container: &ContainerRef, state: ContainerState) {
    let id = container.id.clone();
    context.effect(Effect::ContainerIs(container.engine, id, state));
}

fn start_failure(
    context: &StepContext,
    service: &ServiceKey,
    container: &ContainerRef,
    error: &EngineError,
) -> StepFailure {
    let mut reason = error_chain(error);
    if reason.to_ascii_lowercase().contains("exec format error") {
        reason
            .push_str(": the image is made for another processor architecture than this device's");
    }
    let is_stuck = matches!(error, EngineError::StuckInRuntime { .. });
    StepFailure {
        stuck_container: is_stuck.then(|| container.id.clone()),
        ..context.failed_due_to(&format!("start service '{}'", service.service), reason)
    }
}
