//! The loop's part in preparing for the host going down: all apps are locked, then all services stopped
//! (docs/spec/device.md#v1-power).

use std::collections::BTreeSet;

use model::{ActionError, AppUuid};
use plan::{LockedWork, Subject};
use tokio::sync::oneshot;

use super::ReconcilerTask;
use super::quiesce_state::{QuiesceState, QuiesceStep};
use crate::LockPolicy;
use crate::locks::LockScope;
use crate::messages::ActionReply;
use crate::messages::StepFailure;

impl ReconcilerTask {
    pub(super) fn begin_quiesce(
        &mut self,
        force: bool,
        locked: ActionReply,
        stopped: oneshot::Sender<()>,
    ) {
        if self.host.quiesce.is_some() {
            // The locks of all apps are held or being taken.
            let why = "the device is already being shut down".to_owned();
            let _ = locked.send(Err(ActionError::Locked(why)));
            return;
        }
        let apps: BTreeSet<AppUuid> = self.view.services().map(|s| s.key.app).collect();
        self.host.quiesce = Some(QuiesceState::new(force, apps, locked, stopped));
    }

    /// Advances it as far as possible; returns whether nothing else may be planned meanwhile.
    pub(super) fn quiesce(&mut self) -> bool {
        let Some(quiesce) = &mut self.host.quiesce else {
            return false;
        };
        match quiesce.next() {
            QuiesceStep::Lock { apps, force } => {
                for app in apps {
                    self.take_locks_to_quiesce(app, force);
                }
                return false;
            }
            QuiesceStep::Proceed => {
                if let Some(version) = self.host.os.activates.take() {
                    quiesce.begin_activation();
                    self.activate_os(version);
                } else {
                    self.begin_to_stop();
                }
            }
            QuiesceStep::Stop => {
                self.stop_next();
                let stops =
                    |subject: &Subject| matches!(subject, Subject::Service(_) | Subject::Locks(_));
                if !self.in_flight.any(stops)
                    && let Some(quiesce) = &mut self.host.quiesce
                {
                    quiesce.end();
                }
            }
            QuiesceStep::Wait => {}
        }
        true
    }

    /// Begins to stop services: the locks of all apps are held, and nothing else remains to be done before.
    pub(super) fn begin_to_stop(&mut self) {
        let Some(quiesce) = &mut self.host.quiesce else {
            return;
        };
        quiesce.begin_to_stop();
        self.in_flight.cancel_pulls(|_| true);
        self.stop_next();
    }

    /// Ends the preparation because the host does not go down, for this reason. The next plan releases the locks.
    pub(super) fn end_quiesce(&mut self, why: ActionError) {
        if let Some(quiesce) = self.host.quiesce.take() {
            quiesce.give_up(why);
        }
    }

    fn take_locks_to_quiesce(&mut self, app: AppUuid, force: bool) {
        let locks = Subject::Locks(app.clone());
        if self.in_flight.contains(&locks) {
            return;
        }
        let services = self.view.services_of(&app);
        let Some(app_id) = services.first().map(|service| service.app_id) else {
            if let Some(quiesce) = &mut self.host.quiesce {
                quiesce.note_locks(&app);
            }
            self.again.notify_one();
            return;
        };
        let locked = LockedWork {
            app: app.clone(),
            app_id,
            services: services.into_iter().map(|s| s.key.service).collect(),
            work: Vec::new(),
        };
        self.retries.forget_step(&locks);
        let policy = LockPolicy::forced(force || self.target.settings.override_locks);
        let update = self.os_update_of(&locked, policy);
        self.start_locked(locked, LockScope::WholeFolder, policy, update);
    }

    /// Handles the locks of one app; returns whether that was all there is to do.
    pub(super) fn locks_for_quiesce(
        &mut self,
        app: &AppUuid,
        outcome: &Result<(), StepFailure>,
    ) -> bool {
        let Some(quiesce) = &mut self.host.quiesce else {
            return false;
        };
        // In the later phases, no app is left.
        if !quiesce.waits_for(app) {
            return false;
        }
        let Err(failure) = outcome else {
            quiesce.note_locks(app);
            return false;
        };
        let why = match &failure.postponement {
            Some(postponement) => self.os_postponed(app, postponement.as_ref().clone()),
            None => failure.to_action_error(),
        };
        self.end_quiesce(why);
        if let Some(path) = failure.lock.clone()
            && self.in_flight.contains(&Subject::Reboot)
        {
            // No caller is waiting for this reboot who could repeat the request.
            self.watch_lock(app.clone(), path);
        }
        true
    }

    /// Stops the next services of each app that is not busy; the next pass stops further ones.
    fn stop_next(&mut self) {
        let Some(quiesce) = &mut self.host.quiesce else {
            return;
        };
        let is_busy = |app: &AppUuid| self.in_flight.changes_app(app);
        for locked in quiesce.take_next_stops(self.view.services(), is_busy) {
            // The locks are held: locks of services that were added meanwhile no longer matter.
            self.start_locked(locked, LockScope::Named, LockPolicy::Respect, None);
        }
    }
}
