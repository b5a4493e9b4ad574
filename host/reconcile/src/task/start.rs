//! The loop's part in starting steps: what each needs that the plan does not say, and what becomes busy with it.

use plan::{LockedWork, Step};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::ReconcilerTask;
use crate::apply::{self, LockPlan};
use crate::locks::LockScope;
use crate::messages::StepFailure;
use crate::{LockPolicy, PendingUpdate};

/// The message about `SUPERVISOR_DELTA` (docs/spec/device.md#deltas).
const NO_DELTAS: &str = "SUPERVISOR_DELTA is set, but this device always downloads full images";

impl ReconcilerTask {
    pub(super) fn start(&mut self, step: Step, span: Span) {
        if let Step::UnderLocks(locked) = step {
            let policy = self.policy(&locked.app);
            let update = self.pending_update(&locked, policy);
            if let Some(update) = &update {
                self.held_locks.updates.begin_query(update);
            } else if policy == LockPolicy::Override {
                // Plugins may have postponed it until somebody forced it.
                self.context.host.note_begun_update(&locked.app);
            }
            self.start_locked(locked, LockScope::Named, policy, update);
            return;
        }
        let mut cancel = CancellationToken::new();
        if let Step::PullImage { image, .. } = &step {
            if self.target.lost_pulled_image(image) {
                // It was pulled but is not listed: without a delay, this would loop.
                let why = "it was downloaded, but the engine does not have it by that name";
                self.failed(step.subject(), StepFailure::new(why));
                return;
            }
            cancel = self.in_flight.begin_pull(image);
            if self.target.note_deltas() {
                self.context.log(NO_DELTAS);
            }
        }
        self.in_flight.begin(step.subject());
        apply::spawn(&self.context, step, span, cancel);
    }

    /// Takes the locks of an app that are not held yet, then starts the work under them.
    pub(super) fn start_locked(
        &mut self,
        locked: LockedWork,
        scope: LockScope,
        policy: LockPolicy,
        update: Option<PendingUpdate>,
    ) {
        self.in_flight.begin_locked(&locked);
        let held = self.held_locks.for_app(&locked.app);
        let locking = LockPlan {
            scope,
            held,
            policy,
            update,
        };
        apply::spawn_locked(&self.context, locked, locking);
    }

    /// Returns the update that begins with this work, if it can be postponed: the app runs, and nobody forces the
    /// update. In local mode, the developer alone decides.
    fn pending_update(&self, locked: &LockedWork, policy: LockPolicy) -> Option<PendingUpdate> {
        let app = &locked.app;
        let desired = self.target.app(app);
        let target_commit = desired.and_then(|app| app.commit.clone());
        let is_begun = !self.held_locks.for_app(app).is_empty()
            || self
                .held_locks
                .updates
                .has_begun(app, target_commit.as_ref());
        let runs = !self.view.services_of(app).is_empty();
        if policy == LockPolicy::Override || is_begun || !runs || self.local_mode.is_on() {
            return None;
        }
        Some(PendingUpdate {
            app_id: locked.app_id,
            app: app.clone(),
            services: locked.services.clone(),
            running_commit: self.stored.commits.get(app).cloned(),
            target_commit,
        })
    }
}
