//! The hand-over of a service: the new container runs next to the old one until it reports that it has taken over
//! (docs/spec/device.md#hand-over).

use std::time::Duration;

use model::{AppId, ServiceKey, ServiceName, ServiceState};
use plan::{ContainerRef, StartService};

use super::StepResult;
use super::services::{create_and_start, kill, rename};
use crate::step_context::StepContext;
use crate::view::Effect;
use crate::{Locks, UpdateLocks};

/// The interval at which the file is checked: clients of the reference system expect it.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The old container, and the time limit for the new one.
pub(super) struct HandOver<'a> {
    pub old: &'a ContainerRef,
    /// The temporary name of the old one; `None` if it already has that name.
    pub rename: Option<String>,
    pub grace: Duration,
    pub timeout: Duration,
}

pub(super) async fn hand_over(
    context: &StepContext,
    service: &ServiceKey,
    over: HandOver<'_>,
    start: StartService,
    locks: &UpdateLocks,
) -> StepResult {
    let (app, service_name) = (locks.app(), &service.service);
    // A report from an earlier time does not apply to this hand-over.
    forget_handover(&context.locks, app, service_name).await;
    if let Some(name) = over.rename {
        rename(context, service, over.old, name, locks).await?;
    }
    let (engine, name) = (start.engine, start.service.container_name());
    if let Err(failure) = create_and_start(context, start, locks).await {
        // The old container still runs and stays in use: a new one that failed to start must not take its place at the
        // next attempt.
        remove_failed(context, engine, &name).await;
        return Err(failure);
    }
    context.service_is(service, ServiceState::AwaitingHandover);
    context.log(format!("Handing over service '{}'", service.service));
    let handed_over = until_handed_over(&context.locks, app, service_name);
    if tokio::time::timeout(over.timeout, handed_over)
        .await
        .is_err()
    {
        let seconds = over.timeout.as_secs_f64();
        context.log(format!(
            "Service '{}' did not say within {seconds} s that it has taken over: the update continues as if it had",
            service.service
        ));
    }
    forget_handover(&context.locks, app, service_name).await;
    kill(context, service, over.old, over.grace, locks).await?;
    context.log(format!("Handed over service '{}'", service.service));
    Ok(())
}

/// Removes a container that was created but did not start.
async fn remove_failed(context: &StepContext, engine: model::EngineKind, name: &str) {
    let Ok(on) = context.engine(engine) else {
        return;
    };
    let Ok(containers) = on.containers().await else {
        return;
    };
    for container in containers.into_iter().filter(|found| found.name == name) {
        match on.remove_container(&container.id).await {
            Ok(()) => context.effect(Effect::ContainerRemoved(engine, container.id)),
            Err(error) => tracing::warn!(
                %error,
                container = %container.id,
                "failed to remove `{name}`, which did not start beside its predecessor"
            ),
        }
    }
}

/// Waits until the new container has reported that it has taken over.
async fn until_handed_over(locks: &Locks, app: AppId, service: &ServiceName) {
    let mut looks = tokio::time::interval(LOOK_AGAIN);
    loop {
        looks.tick().await;
        let service = service.clone();
        let is_handed_over = locks.blocking(move |locks| locks.is_handed_over(app, &service));
        if is_handed_over.await.unwrap_or(false) {
            return;
        }
    }
}

async fn forget_handover(locks: &Locks, app: AppId, service: &ServiceName) {
    let service = service.clone();
    locks
        .blocking(move |locks| locks.forget_handover(app, &service))
        .await;
}
