//! The preparation for the host going down: all apps are locked, then all services stopped
//! (docs/spec/device.md#v1-power).

use std::collections::BTreeSet;

use model::{ActionError, AppUuid, ContainerId, CurrentService};
use plan::{ContainerRef, LockedStep, LockedWork, ServiceWork, Subject};
use tokio::sync::oneshot;

use super::ReconcilerTask;
use crate::LockPolicy;
use crate::actions::ActionReply;
use crate::locks::LockScope;
use crate::messages::StepFailure;

/// The progress of the preparation.
pub(super) struct Quiesce {
    force: bool,
    phase: QuiescePhase,
    /// The apps whose locks are not held yet.
    apps: BTreeSet<AppUuid>,
    /// Containers that are being stopped, or were: a container that keeps running is not stopped again.
    stopping: BTreeSet<ContainerId>,
    /// Answered when the locks are held.
    locked: Option<ActionReply>,
    /// Answered when no service runs any more.
    stopped: Option<oneshot::Sender<()>>,
}

#[derive(Clone, Copy)]
enum QuiescePhase {
    Locking,
    /// Another version of the operating system is being activated.
    Activating,
    Stopping,
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
            // The locks of all apps are held or being taken.
            let why = "the device is already being shut down".to_owned();
            let _ = locked.send(Err(ActionError::Locked(why)));
            return;
        }
        let apps: BTreeSet<AppUuid> = self.view.services().map(|s| s.key.app).collect();
        self.host.quiesce = Some(Quiesce {
            force,
            phase: QuiescePhase::Locking,
            apps,
            stopping: BTreeSet::new(),
            locked: Some(locked),
            stopped: Some(stopped),
        });
    }

    /// Advances it as far as possible; returns whether nothing else may be planned meanwhile.
    pub(super) fn quiesce(&mut self) -> bool {
        let Some(quiesce) = &mut self.host.quiesce else {
            return false;
        };
        match quiesce.phase {
            QuiescePhase::Locking if quiesce.apps.is_empty() => {
                if let Some(version) = self.host.os.activates.take() {
                    quiesce.phase = QuiescePhase::Activating;
                    self.activate_os(version);
                } else {
                    self.begin_to_stop();
                }
            }
            QuiescePhase::Activating => {}
            QuiescePhase::Locking => {
                let (apps, force) = (quiesce.apps.clone(), quiesce.force);
                for app in apps {
                    self.take_locks_to_quiesce(app, force);
                }
                return false;
            }
            QuiescePhase::Stopping => {
                self.stop_next();
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

    /// Begins to stop services: the locks of all apps are held, and nothing else remains to be done before.
    pub(super) fn begin_to_stop(&mut self) {
        let Some(quiesce) = &mut self.host.quiesce else {
            return;
        };
        quiesce.phase = QuiescePhase::Stopping;
        if let Some(locked) = quiesce.locked.take() {
            let _ = locked.send(Ok(()));
        }
        self.in_flight.cancel_pulls(|_| true);
        self.stop_next();
    }

    /// Ends the preparation because the host does not go down, for this reason. The next plan releases the locks.
    pub(super) fn end_quiesce(&mut self, why: ActionError) {
        let quiesce = self.host.quiesce.take();
        if let Some(locked) = quiesce.and_then(|quiesce| quiesce.locked) {
            let _ = locked.send(Err(why));
        }
    }

    fn take_locks_to_quiesce(&mut self, app: AppUuid, force: bool) {
        let locks = Subject::Locks(app.clone());
        if self.in_flight.contains(&locks) {
            return;
        }
        let services = self.services_of(&app);
        let Some(app_id) = services.first().map(|service| service.app_id) else {
            if let Some(quiesce) = &mut self.host.quiesce {
                quiesce.apps.remove(&app);
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
        self.retries.steps.remove(&locks);
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
        if !quiesce.apps.contains(app) {
            return false;
        }
        let Err(failure) = outcome else {
            quiesce.apps.remove(app);
            return false;
        };
        let why = match &failure.postponement {
            Some(postponement) => self.os_postponed(app, postponement.clone()),
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

    /// Stops the services that no other running service depends on, in each app that is not busy; the next pass stops
    /// further ones.
    fn stop_next(&mut self) {
        let Some(quiesce) = &self.host.quiesce else {
            return;
        };
        let services = self.view.services();
        let running: Vec<CurrentService> = services
            .filter(|service| service.runs() && !quiesce.stopping.contains(&service.container))
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
        if let Some(quiesce) = &mut self.host.quiesce {
            let containers = services.iter().map(|service| service.container.clone());
            quiesce.stopping.extend(containers);
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
        let locked = LockedWork {
            app,
            app_id: first.app_id,
            services: services.iter().map(|s| s.key.service.clone()).collect(),
            work,
        };
        // The locks are held: locks of services that were added meanwhile no longer matter.
        self.start_locked(locked, LockScope::Named, LockPolicy::Respect, None);
    }
}

/// Returns the services that no other of these depends on; all of them if they depend on each other in a cycle.
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
