//! Before the host goes down: all apps are locked, then all services stopped (device API, "Tries to stop
//! services first").

use std::collections::BTreeSet;

use model::{ActionError, AppUuid};
use plan::{ContainerRef, Locked, LockedStep, ServiceWork, Subject};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Lap;
use super::act::runs;
use crate::actions::Answer;
use crate::locks::Reach;
use crate::messages::StepFailure;
use crate::{LockPolicy, apply};

/// How far it is.
pub(super) struct Quiesce {
    force: bool,
    phase: Phase,
    /// Where it is told that the locks are held.
    locked: Option<Answer>,
    /// Where it is told that nothing runs any more.
    stopped: Option<oneshot::Sender<()>>,
}

enum Phase {
    /// The locks of these apps are not held yet.
    Locking(BTreeSet<AppUuid>),
    Stopping,
    Stopped,
}

impl Lap {
    pub(super) fn begin_quiesce(
        &mut self,
        force: bool,
        locked: Answer,
        stopped: oneshot::Sender<()>,
    ) {
        if self.quiesce.is_some() {
            let why = "the device is being shut down already".to_owned();
            let _ = locked.send(Err(ActionError::Failed(why)));
            return;
        }
        let apps: BTreeSet<AppUuid> = self.view.services().map(|s| s.key.app).collect();
        self.quiesce = Some(Quiesce {
            force,
            phase: Phase::Locking(apps),
            locked: Some(locked),
            stopped: Some(stopped),
        });
    }

    /// Brings it as far as it goes; answers whether nothing else may be planned meanwhile.
    pub(super) fn quiesce(&mut self) -> bool {
        let Some(quiesce) = &mut self.quiesce else {
            return false;
        };
        match &quiesce.phase {
            Phase::Locking(apps) if apps.is_empty() => {
                quiesce.phase = Phase::Stopping;
                if let Some(locked) = quiesce.locked.take() {
                    let _ = locked.send(Ok(()));
                }
                self.stop_everything();
            }
            Phase::Locking(apps) => {
                let (apps, force) = (apps.clone(), quiesce.force);
                for app in apps {
                    self.take_locks_to_quiesce(app, force);
                }
                return false;
            }
            Phase::Stopping => {
                let mut busy = self.busy.keys();
                if !busy.any(|subject| matches!(subject, Subject::Service(_) | Subject::Locks(_))) {
                    quiesce.phase = Phase::Stopped;
                    if let Some(stopped) = quiesce.stopped.take() {
                        let _ = stopped.send(());
                    }
                }
            }
            Phase::Stopped => {}
        }
        true
    }

    fn take_locks_to_quiesce(&mut self, app: AppUuid, force: bool) {
        let locks = Subject::Locks(app.clone());
        if self.busy.contains_key(&locks) {
            return;
        }
        let services = self.services_of(&app);
        let Some(app_id) = services.first().map(|service| service.app_id) else {
            self.locked_to_quiesce(&app);
            self.again.notify_one();
            return;
        };
        let locked = Locked {
            app: app.clone(),
            app_id,
            services: services.into_iter().map(|s| s.key.service).collect(),
            work: Vec::new(),
        };
        self.failing.remove(&locks);
        self.busy.insert(locks, Instant::now());
        let held = self.guards.get(&app).cloned().unwrap_or_default();
        let policy = match force || self.settings.override_locks {
            true => LockPolicy::Override,
            false => LockPolicy::Respect,
        };
        apply::spawn_locked(&self.world, locked, Reach::WholeFolder, held, policy);
    }

    fn locked_to_quiesce(&mut self, app: &AppUuid) {
        if let Some(quiesce) = &mut self.quiesce
            && let Phase::Locking(apps) = &mut quiesce.phase
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
        let Some(quiesce) = &mut self.quiesce else {
            return false;
        };
        match (&quiesce.phase, outcome) {
            (Phase::Locking(apps), Ok(())) if apps.contains(app) => {
                self.locked_to_quiesce(app);
                false
            }
            (Phase::Locking(apps), Err(failure)) if apps.contains(app) => {
                let why = failure.reason.clone();
                let lock = failure.lock.clone();
                if let Some(locked) = quiesce.locked.take() {
                    let _ = locked.send(Err(match failure.lock.is_some() || failure.is_busy {
                        true => ActionError::Locked(why),
                        false => ActionError::Failed(why),
                    }));
                }
                // What was taken is released by the next plan.
                self.quiesce = None;
                if let Some(path) = lock.filter(|_| self.busy.contains_key(&Subject::Reboot)) {
                    // Nobody asked for this reboot again who could ask once more.
                    self.watch_lock(app.clone(), path);
                }
                true
            }
            _ => false,
        }
    }

    fn stop_everything(&mut self) {
        self.cancel_pulls(|_| true);
        let mut apps: BTreeSet<AppUuid> = BTreeSet::new();
        let running: Vec<_> = self.view.services().filter(runs).collect();
        apps.extend(running.iter().map(|service| service.key.app.clone()));
        let now = Instant::now();
        for app in apps {
            let services: Vec<_> = running.iter().filter(|s| s.key.app == app).collect();
            let Some(first) = services.first() else {
                continue;
            };
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
            self.busy.insert(Subject::Locks(app.clone()), now);
            for work in &work {
                self.busy
                    .insert(Subject::Service(work.service.clone()), now);
            }
            let held = self.guards.get(&app).cloned().unwrap_or_default();
            let locked = Locked {
                app,
                app_id: first.app_id,
                services: services.iter().map(|s| s.key.service.clone()).collect(),
                work,
            };
            // They are held: a service that came meanwhile is of no lock's concern any more.
            apply::spawn_locked(&self.world, locked, Reach::Named, held, LockPolicy::Respect);
        }
    }
}
