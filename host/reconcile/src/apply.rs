//! Turns the steps of a plan into tasks: bounded, and each sure to report its end.

use std::sync::Arc;

use plan::{Locked, ServiceWork, Step, Subject};
use tokio_util::sync::CancellationToken;

use crate::locks::Reach;
use crate::messages::{Message, StepFailure};
use crate::steps::{self, World};
use crate::{LockError, LockPolicy, UpdateLocks};

/// Says that the step about a subject has ended, also where its task panicked or was dropped.
struct Report {
    world: Arc<World>,
    subject: Option<Subject>,
}

impl Report {
    fn new(world: &Arc<World>, subject: Subject) -> Self {
        Report {
            world: Arc::clone(world),
            subject: Some(subject),
        }
    }

    fn finish(mut self, outcome: Result<(), StepFailure>) {
        if let Some(subject) = self.subject.take() {
            self.world.tell(Message::Finished(subject, outcome));
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(subject) = self.subject.take() {
            let failure = StepFailure::new("the step broke off");
            self.world.tell(Message::Finished(subject, Err(failure)));
        }
    }
}

/// Starts a step that needs no locks; `cancel` ends it early.
pub(crate) fn spawn(world: &Arc<World>, step: Step, cancel: CancellationToken) {
    let report = Report::new(world, step.subject());
    let world = Arc::clone(world);
    tokio::spawn(async move {
        // A pull waits for a place of its own: it takes long, and must not keep starts from running.
        let is_pull = matches!(step, Step::PullImage { .. });
        let taken = async {
            let _permit = match is_pull {
                true => None,
                false => world.steps.acquire().await.ok(),
            };
            steps::take(&world, step).await
        };
        let outcome = match cancel.run_until_cancelled(taken).await {
            Some(outcome) => outcome,
            None => Err(StepFailure {
                cancelled: true,
                ..StepFailure::new("it is no longer wanted")
            }),
        };
        report.finish(outcome);
    });
}

/// Takes the locks that are not in `held`, then starts the work of each service.
pub(crate) fn spawn_locked(
    world: &Arc<World>,
    locked: Locked,
    reach: Reach,
    held: Vec<Arc<UpdateLocks>>,
    policy: LockPolicy,
) {
    let lock_report = Report::new(world, Subject::Locks(locked.app.clone()));
    let reports: Vec<(ServiceWork, Report)> = locked
        .work
        .into_iter()
        .map(|work| {
            let report = Report::new(world, Subject::Service(work.service.clone()));
            (work, report)
        })
        .collect();
    let world = Arc::clone(world);
    tokio::spawn(async move {
        let mut guards = held;
        let (locks, have) = (world.locks.clone(), guards.clone());
        let taking =
            move || locks.take_missing(locked.app_id, locked.services, reach, &have, policy);
        match tokio::task::spawn_blocking(taking).await {
            Ok(Ok(Some(guard))) => {
                let guard = Arc::new(guard);
                world.moments.reached("lock-taken");
                world.tell(Message::LocksTaken(locked.app, Arc::clone(&guard)));
                guards.push(guard);
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => return refuse(lock_report, reports, &error),
            // A panic while taking: the reports say so when they are dropped.
            Err(_) => return,
        }
        lock_report.finish(Ok(()));
        for (work, report) in reports {
            // Each holds the guards for as long as it runs, whatever becomes of the loop.
            let guards = guards.clone();
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let guard = guards
                    .iter()
                    .find(|guard| guard.covers(&work.service.service));
                let outcome = match guard {
                    Some(guard) => {
                        let _permit = world.steps.acquire().await;
                        steps::under_locks(&world, work, guard).await
                    }
                    None => Err(StepFailure::new("its update lock is not held")),
                };
                report.finish(outcome);
            });
        }
    });
}

fn refuse(lock_report: Report, reports: Vec<(ServiceWork, Report)>, error: &LockError) {
    let lock = match error {
        LockError::Locked { path, .. } => Some(path.clone()),
        LockError::Busy { .. } | LockError::AllBusy | LockError::Failed { .. } => None,
    };
    // The services did not fail: they were not tried.
    for (_, report) in reports {
        report.finish(Err(StepFailure {
            cancelled: true,
            ..StepFailure::new("the update is locked")
        }));
    }
    lock_report.finish(Err(StepFailure {
        lock,
        is_busy: matches!(error, LockError::Busy { .. }),
        ..StepFailure::new(model::error_chain(error))
    }));
}
