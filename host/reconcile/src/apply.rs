//! Turns the steps of a plan into tasks. Their number is limited, and each reports its end in any case.

use std::sync::Arc;

use plan::{LockedWork, ServiceWork, Step, Subject};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::locks::LockScope;
use crate::messages::{Message, StepFailure};
use crate::step_context::StepContext;
use crate::step_span;
use crate::steps;
use crate::{LockError, LockPolicy, PendingUpdate, UpdateLocks, UpdatePostponement};

/// Reports the end of a step, even if its task panicked or was dropped.
struct StepReport {
    context: Arc<StepContext>,
    subject: Option<Subject>,
}

impl StepReport {
    fn new(context: &Arc<StepContext>, subject: Subject) -> Self {
        StepReport {
            context: Arc::clone(context),
            subject: Some(subject),
        }
    }

    fn finish(mut self, outcome: Result<(), StepFailure>) {
        if let Some(subject) = self.subject.take() {
            self.context.send(Message::Finished(subject, outcome));
        }
    }
}

impl Drop for StepReport {
    fn drop(&mut self) {
        if let Some(subject) = self.subject.take() {
            let failure =
                StepFailure::new("the task of this step ended unexpectedly; the log has the cause");
            self.context.send(Message::Finished(subject, Err(failure)));
        }
    }
}

/// Starts a step that needs no locks, in its span; `cancel` ends it early.
pub(crate) fn spawn(context: &Arc<StepContext>, step: Step, span: Span, cancel: CancellationToken) {
    let report = StepReport::new(context, step.subject());
    let context = Arc::clone(context);
    let running = async move {
        // Pulls have a limit of their own: they take long, and must not keep starts from running.
        let is_pull = matches!(step, Step::PullImage { .. });
        let execution = async {
            let _permit = if is_pull {
                None
            } else {
                context.steps.acquire().await.ok()
            };
            steps::execute(&context, step).await
        };
        let outcome = match cancel.run_until_cancelled(execution).await {
            Some(outcome) => outcome,
            None => Err(StepFailure::cancelled("it is no longer needed")),
        };
        report.finish(outcome);
    };
    tokio::spawn(running.instrument(span));
}

/// How the locks of an app are taken.
pub(crate) struct LockPlan {
    pub scope: LockScope,
    /// Locks that are held already.
    pub held: Vec<Arc<UpdateLocks>>,
    pub policy: LockPolicy,
    /// The update that begins with it, if a plugin may postpone it.
    pub update: Option<PendingUpdate>,
}

/// Takes the locks that are not held yet, then starts the work of each service.
pub(crate) fn spawn_locked(context: &Arc<StepContext>, locked: LockedWork, locking: LockPlan) {
    let span = step_span::for_locking(&locked);
    let lock_report = StepReport::new(context, Subject::Locks(locked.app.clone()));
    let reports: Vec<(ServiceWork, StepReport)> = locked
        .work
        .into_iter()
        .map(|work| {
            let report = StepReport::new(context, Subject::Service(work.service.clone()));
            (work, report)
        })
        .collect();
    let context = Arc::clone(context);
    let running = async move {
        let LockPlan {
            scope,
            held: mut guards,
            policy,
            update,
        } = locking;
        if let Some(update) = update
            && let Some(postponement) = context.host.postponement(&update).await
        {
            return postpone(lock_report, reports, postponement);
        }
        let (locks, have) = (&context.locks, guards.clone());
        let taking = locks.blocking(move |locks| {
            locks.take_missing(locked.app_id, locked.services, scope, &have, policy)
        });
        match taking.await {
            Some(Ok(Some(guard))) => {
                let guard = Arc::new(guard);
                context.moments.reached("lock-taken");
                context.send(Message::LocksTaken(locked.app, Arc::clone(&guard)));
                guards.push(guard);
            }
            Some(Ok(None)) => {}
            Some(Err(error)) => return refuse(lock_report, reports, &error),
            // The task that takes the locks has panicked: the reports say so when they are dropped.
            None => return,
        }
        lock_report.finish(Ok(()));
        for (work, report) in reports {
            // Each task holds the guards for as long as it runs, whatever happens to the loop.
            let guards = guards.clone();
            let context = Arc::clone(&context);
            let span = step_span::for_service(&work.service);
            let running = async move {
                let guard = guards
                    .iter()
                    .find(|guard| guard.covers(&work.service.service));
                let outcome = match guard {
                    Some(guard) => {
                        let _permit = context.steps.acquire().await;
                        steps::under_locks(&context, work, guard).await
                    }
                    None => Err(StepFailure::new("its update lock is not held")),
                };
                report.finish(outcome);
            };
            // A separate span, not nested in that of the locks: it lasts longer.
            tokio::spawn(running.instrument(span));
        }
    };
    tokio::spawn(running.instrument(span));
}

fn postpone(
    lock_report: StepReport,
    reports: Vec<(ServiceWork, StepReport)>,
    postponement: UpdatePostponement,
) {
    for (_, report) in reports {
        report.finish(Err(StepFailure::cancelled("the update is postponed")));
    }
    lock_report.finish(Err(StepFailure {
        postponement: Some(Box::new(postponement)),
        ..StepFailure::default()
    }));
}

fn refuse(lock_report: StepReport, reports: Vec<(ServiceWork, StepReport)>, error: &LockError) {
    let lock = match error {
        LockError::Locked { path, .. } => Some(path.clone()),
        _ => None,
    };
    // The services did not fail: they were not tried.
    for (_, report) in reports {
        report.finish(Err(StepFailure::cancelled("the update is locked")));
    }
    lock_report.finish(Err(StepFailure {
        lock,
        is_busy: matches!(error, LockError::Busy { .. }),
        ..StepFailure::new(model::error_chain(error))
    }));
}
