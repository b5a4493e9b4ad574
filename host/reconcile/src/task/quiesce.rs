//! Before the host goes down: all apps are locked, then all services stopped (docs/spec/device.md#v1-power).

use std::collections::BTreeSet;

use model::{ActionError, AppUuid, ContainerId, CurrentService};
use plan::{ContainerRef, LockedStep, LockedWork, ServiceWork, Subject};
use tokio::sync::oneshot;

use super::ReconcilerTask;
use crate::actions::ActionReply;
use crate::locks::LockScope;
use crate::messages::StepFailure;
use crate::{LockPolicy, apply};

/// How far it is.
pub(super) struct Quiesce {
    force: bool,
    phase: QuiescePhase,
    /// Where it is told that the locks are held.
    locked: Option<ActionReply>,
    /// Where it is told that nothing runs any more.
    stopped: Option<oneshot::Sender<()>>,
}

enum QuiescePhase {
    /// The locks of these apps are not held yet.
    Locking(BTreeSet<AppUuid>),
    /// These containers have been told to stop; one that did not is not told again.
    Stopping(BTreeSet<ContainerId>),
    Stopped,
}

impl ReconcilerTask {
    pub(super) fn begin_quiesce(
        &mut self,
        force: bool,
        locked: ActionReply,
        stopped: oneshot::Sender<()>,
    ) {
        if self.host.quiesce.is_some() {
            // The locks of all apps are held, or being taken.
            let why = "the device is being shut down already".to_owned();
            let _ = locked.send(Err(ActionError::Locked(why)));
            return;
        }
        let apps: BTreeSet<AppUuid> = self.view.services().map(|s| s.key.app).collect();
        self.host.quiesce = Some(Quiesce {
            force,
            phase: QuiescePhase::Locking(apps),
            locked: Some(locked),
            stopped: Some(stopped),
        });
    }

    /// Brings it as far as it goes; answers whether nothing else may be planned meanwhile.
    pub(super) fn quiesce(&mut self) -> bool {
        let Some(quiesce) = &mut self.host.quiesce else {
            return false;
        };
        match &quiesce.phase {
            QuiescePhase::Locking(apps) if apps.is_empty() => {
                quiesce.phase = QuiescePhase::Stopping(BTreeSet::new());
                if let Some(locked) = quiesce.locked.take() {
                    let _ = locked.send(Ok(()));
                }
                self.in_flight.cancel_pulls(|_| true);
                self.stop_next(&BTreeSet::new());
            }
            QuiescePhase::Locking(apps) => {
                let (apps, force) = (apps.clone(), quiesce.force);
                for app in apps {
                    self.take_locks_to_quiesce(app, force);
                }
                return false;
            }
            QuiescePhase::Stopping(told) => {
                let told = told.clone();
                self.stop_next(&told);
                let stops =
                    |subject: &Subject| matches!(subject, Subject::Service(_) | Subject::Locks(_));
                if !self.in_flight.any(stops)
                    && let Some(quiesce) = &mut self.host.quiesce
                {
                    quiesce.phase = QuiescePhase::Stopped;
                    if let Some(stopped) = quiesce.stopped.take() {
                        let _ = stopped.send(());
                    }
                }
            }
            QuiescePhase::Stopped => {}
        }
        true
    }

    fn take_locks_to_quiesce(&mut self, app: AppUuid, force: bool) {
        let locks = Subject::Locks(app.clone());
        if self.in_flight.contains(&locks) {
            return;
        }
        let services = self.services_of(&app);
        let Some(app_id) = services.first().map(|service| service.app_id) else {
            self.locked_to_quiesce(&app);
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
        self.in_flight.begin_locked(&locked);
        let held = self.held_locks.of(&app);
        let policy = if force || self.target.settings.override_locks {
            LockPolicy::Override
        } else {
            LockPolicy::Respect
        };
        apply::spawn_locked(&self.context, locked, LockScope::WholeFolder, held, policy);
    }

    fn locked_to_quiesce(&mut self, app: &AppUuid) {
        if let Some(quiesce) = &mut self.host.quiesce
            && let QuiescePhase::Locking(apps) = &mut quiesce.phase
        {
            apps.remove(app);
        }
    }

    /// Takes note of the locks of one app; answers whether that was all there is to do.
    pub(super) fn locks_for_quiesce(
        &mut self,
        app: &AppUuid,
        outcome: &Result<(), StepFailure>,
    ) -> bool {
        let Some(quiesce) = &mut self.host.quiesce else {
            return false;
        };
        match (&quiesce.phase, outcome) {
            (QuiescePhase::Locking(apps), Ok(())) if apps.contains(app) => {
                self.locked_to_quiesce(app);
                false
            }
            (QuiescePhase::Locking(apps), Err(failure)) if apps.contains(app) => {
                let why = failure.reason.clone();
                let lock = failure.lock.clone();
                if let Some(locked) = quiesce.locked.take() {
                    let _ = locked.send(Err(if failure.lock.is_some() || failure.is_busy {
                        ActionError::Locked(why)
                    } else {
                        ActionError::Failed(why)
                    }));
                }
                // What was taken is released by the next plan.
                self.host.quiesce = None;
                if let Some(path) = lock.filter(|_| self.in_flight.contains(&Subject::Reboot)) {
                    // Nobody asked for this reboot again who could ask once more.
                    self.watch_lock(app.clone(), path);
                }
                true
            }
            _ => false,
        }
    }

    /// Stops what no other running service depends on, of each app of which nothing is being done; the
    /// next pass stops what comes after it. Those in `told` have had their turn.
    fn stop_next(&mut self, told: &BTreeSet<ContainerId>) {
        let services = self.view.services();
        let running: Vec<CurrentService> = services
            .filter(|service| service.runs() && !told.contains(&service.container))
            .collect();
        let apps: BTreeSet<AppUuid> = running.iter().map(|s| s.key.app.clone()).collect();
        for app in apps {
            let of_app: Vec<&CurrentService> =
                running.iter().filter(|s| s.key.app == app).collect();
            let is_busy = self.in_flight.any(|subject| match subject {
                Subject::Locks(locked) => *locked == app,
                Subject::Service(service) => service.app == app,
                _ => false,
            });
            if !is_busy {
                self.stop(app, first_to_stop(&of_app));
            }
        }
    }

    fn stop(&mut self, app: AppUuid, services: Vec<&CurrentService>) {
        let Some(first) = services.first() else {
            return;
        };
        if let Some(quiesce) = &mut self.host.quiesce
            && let QuiescePhase::Stopping(told) = &mut quiesce.phase
        {
            told.extend(services.iter().map(|service| service.container.clone()));
        }
        let work: Vec<ServiceWork> = services
            .iter()
            .map(|service| ServiceWork {
                service: service.key.clone(),
                steps: vec![LockedStep::Stop {
                    container: ContainerRef {
                        engine: service.engine,
                        id: service.container.clone(),
                    },
                    grace: service.stop_grace,
                }],
            })
            .collect();
        let held = self.held_locks.of(&app);
        let locked = LockedWork {
            app,
            app_id: first.app_id,
            services: services.iter().map(|s| s.key.service.clone()).collect(),
            work,
        };
        self.in_flight.begin_locked(&locked);
        // They are held: a service that came meanwhile is of no lock's concern any more.
        apply::spawn_locked(
            &self.context,
            locked,
            LockScope::Named,
            held,
            LockPolicy::Respect,
        );
    }
}

/// Those that no other of these depends on; all of them where they depend on each other in a circle.
fn first_to_stop<'a>(services: &[&'a CurrentService]) -> Vec<&'a CurrentService> {
    let is_needed = |service: &CurrentService| {
        services
            .iter()
            .any(|other| other.stops_before(&service.key))
    };
    let first: Vec<_> = services.iter().copied().filter(|s| !is_needed(s)).collect();
    if first.is_empty() {
        services.to_vec()
    } else {
        first
    }
}
