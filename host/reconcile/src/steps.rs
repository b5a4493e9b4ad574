//! The steps themselves: each does what the plan says, reports the result to the loop, and decides nothing. Functions
//! that disturb a service require the guard of its locks.

mod components;
mod images;
mod services;

use plan::Step;

pub(crate) use services::{create_and_start, kill, rename, under_locks};

use crate::messages::{Message, StepFailure, StoredRecord};
use crate::step_context::StepContext;
use crate::view::Effect;

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
