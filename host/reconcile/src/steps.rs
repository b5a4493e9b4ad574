//! The steps themselves: each does what the plan says, reports the result to the loop, and decides nothing. Functions
//! that disturb a service require the guard of its locks.

mod components;
mod hand_over;
mod images;
mod services;

use plan::{LockedStep, ServiceWork, Step};

use crate::UpdateLocks;
use crate::messages::{Message, StepFailure, StoredRecord};
use crate::step_context::StepContext;
use crate::view::Effect;

use hand_over::HandOver;

pub(crate) type StepResult = Result<(), StepFailure>;

/// Executes a step that needs no lock.
pub(crate) async fn execute(context: &StepContext, step: Step) -> StepResult {
    match step {
        Step::PullImage {
            image,
            engine,
            users,
        } => images::pull(context, &image, engine, users).await,
        Step::RemoveImage { image, engine } => images::remove(context, &image, engine).await,
        Step::CreateComponent { engine, component } => {
            components::create(context, engine, &component).await
        }
        Step::RemoveComponent {
            engine, kind, name, ..
        } => components::remove(context, engine, kind, name).await,
        Step::RemoveDead { container, .. } => {
            let engine = context.engine(container.engine)?;
            let removed = engine.remove_container(&container.id).await;
            removed.map_err(|error| context.failed("remove a dead container", &error))?;
            context.effect(Effect::ContainerRemoved(container.engine, container.id));
            Ok(())
        }
        Step::StartExisting {
            app_id,
            service,
            container,
        } => services::start_existing(context, app_id, &service, &container).await,
        Step::RecordCommit { app, commit } => {
            Ok(context.record(StoredRecord::Commit(app, commit)).await?)
        }
        Step::ForgetCommit { app } => Ok(context.record(StoredRecord::NoCommit(app)).await?),
        Step::Configure { part, desired } => {
            context.log(format!("Changing the host's {part}"));
            let configured = context.host.configure(part, &desired).await;
            // Whatever the outcome, the host may have changed.
            context.send(Message::HostChanged);
            let what = format!("change the host's {part}");
            configured.map_err(|why| context.failed_due_to(&what, why))
        }
        // Done by the loop itself: they concern its guards, all services, or its record of the operating system.
        Step::UnderLocks(_)
        | Step::ReleaseLocks { .. }
        | Step::StageOs { .. }
        | Step::CommitOs { .. }
        | Step::RollBackOs { .. }
        | Step::Reboot { .. } => Ok(()),
    }
}

/// Executes the steps of one service, in order.
pub(crate) async fn under_locks(
    context: &StepContext,
    work: ServiceWork,
    locks: &UpdateLocks,
) -> StepResult {
    let service = work.service;
    for step in work.steps {
        match step {
            LockedStep::Stop { container, grace } => {
                services::stop(context, &service, &container, grace, locks).await?;
            }
            LockedStep::Kill {
                container, grace, ..
            } => {
                services::kill(context, &service, &container, grace, locks).await?;
            }
            LockedStep::Rename { container, name } => {
                services::rename(context, &service, &container, name, locks).await?;
            }
            LockedStep::RemoveImage { engine, image } => {
                // The kill was what mattered: an image that stays takes up space, and the pull will report that.
                if let Err(failure) = images::remove(context, &image, Some(engine)).await {
                    tracing::warn!(%image, "failed to remove the image `{image}`: {}", failure.reason);
                }
            }
            LockedStep::HandOver {
                old,
                rename,
                grace,
                timeout,
                start,
                ..
            } => {
                let over = HandOver {
                    old: &old,
                    rename,
                    grace,
                    timeout,
                };
                hand_over::hand_over(context, &service, over, *start, locks).await?;
            }
            LockedStep::Start(start) => services::create_and_start(context, *start, locks).await?,
        }
    }
    Ok(())
}
