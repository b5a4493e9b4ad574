//! The state of the preparation for the host going down: which locks are missing, and which services still run
//! (docs/spec/device.md#v1-power). It decides what comes next; the loop takes the locks and stops the services.

use std::collections::BTreeSet;

use model::{ActionError, AppUuid, ContainerId, CurrentService};
use plan::{ContainerRef, LockedStep, LockedWork, ServiceWork};
use tokio::sync::oneshot;

use crate::messages::ActionReply;

/// The progress of the preparation.
#[derive(Debug)]
pub(super) struct QuiesceState {
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

#[derive(Debug, Clone, Copy)]
enum QuiescePhase {
    Locking,
    /// Another version of the operating system is being activated.
    Activating,
    Stopping,
    Stopped,
}

/// What the loop does next for the preparation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QuiesceStep {
    /// Takes the locks of these apps, and plans as always meanwhile.
    Lock {
        apps: BTreeSet<AppUuid>,
        force: bool,
    },
    /// Goes on to activate or to stop: all locks are held.
    Proceed,
    /// Stops the next services, until none is left.
    Stop,
    /// Nothing, until something ends.
    Wait,
}

impl QuiesceState {
    /// Begins the preparation, with the apps that have containers.
    pub(super) fn new(
        force: bool,
        apps: BTreeSet<AppUuid>,
        locked: ActionReply,
        stopped: oneshot::Sender<()>,
    ) -> Self {
        QuiesceState {
            force,
            phase: QuiescePhase::Locking,
            apps,
            stopping: BTreeSet::new(),
            locked: Some(locked),
            stopped: Some(stopped),
        }
    }

    pub(super) fn next(&self) -> QuiesceStep {
        match self.phase {
            QuiescePhase::Locking if self.apps.is_empty() => QuiesceStep::Proceed,
            QuiescePhase::Locking => QuiesceStep::Lock {
                apps: self.apps.clone(),
                force: self.force,
            },
            QuiescePhase::Stopping => QuiesceStep::Stop,
            QuiescePhase::Activating | QuiescePhase::Stopped => QuiesceStep::Wait,
        }
    }

    /// Returns whether it waits for the locks of an app.
    pub(super) fn waits_for(&self, app: &AppUuid) -> bool {
        self.apps.contains(app)
    }

    /// Records that the locks of an app are held, or that it has no service left.
    pub(super) fn note_locks(&mut self, app: &AppUuid) {
        self.apps.remove(app);
    }

    /// Records that another version of the operating system is being activated.
    pub(super) fn begin_activation(&mut self) {
        self.phase = QuiescePhase::Activating;
    }

    /// Begins to stop services, and says to the caller that the locks are held.
    pub(super) fn begin_to_stop(&mut self) {
        self.phase = QuiescePhase::Stopping;
        if let Some(locked) = self.locked.take() {
            let _ = locked.send(Ok(()));
        }
    }

    /// Records that no service runs any more, and says so to the caller.
    pub(super) fn end(&mut self) {
        self.phase = QuiescePhase::Stopped;
        if let Some(stopped) = self.stopped.take() {
            let _ = stopped.send(());
        }
    }

    /// Gives the preparation up, and says why to a caller that waits for the locks.
    pub(super) fn give_up(self, why: ActionError) {
        if let Some(locked) = self.locked {
            let _ = locked.send(Err(why));
        }
    }

    /// Returns the work of stopping the services that no other running service depends on, for each app that is not
    /// busy. Each container is part of it once.
    pub(super) fn take_next_stops(
        &mut self,
        services: impl Iterator<Item = CurrentService>,
        is_busy: impl Fn(&AppUuid) -> bool,
    ) -> Vec<LockedWork> {
        let running: Vec<CurrentService> = services
            .filter(|service| service.runs() && !self.stopping.contains(&service.container))
            .collect();
        let apps: BTreeSet<&AppUuid> = running.iter().map(|s| &s.key.app).collect();
        let idle = apps.into_iter().filter(|app| !is_busy(app));
        let work = idle.filter_map(|app| {
            let of_app: Vec<&CurrentService> =
                running.iter().filter(|s| s.key.app == *app).collect();
            stop(&first_to_stop(&of_app))
        });
        let work: Vec<LockedWork> = work.collect();
        let steps = work.iter().flat_map(|work| &work.work);
        for step in steps.flat_map(|work| &work.steps) {
            if let LockedStep::Stop { container, .. } = step {
                self.stopping.insert(container.id.clone());
            }
        }
        work
    }
}

/// Returns the work of stopping services of one app; `None` without any.
fn stop(services: &[&CurrentService]) -> Option<LockedWork> {
    let first = services.first()?;
    let work = services.iter().map(|service| ServiceWork {
        service: service.key.clone(),
        steps: vec![LockedStep::Stop {
            container: ContainerRef {
                engine: service.engine,
                id: service.container.clone(),
            },
            grace: service.stop_grace,
        }],
    });
    Some(LockedWork {
        app: first.key.app.clone(),
        app_id: first.app_id,
        services: services.iter().map(|s| s.key.service.clone()).collect(),
        work: work.collect(),
    })
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

#[cfg(test)]
mod tests;
