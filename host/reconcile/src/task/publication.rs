//! The loop's output: its status, the events of its changes, and the acknowledgement of commands that the status
//! includes.

use std::sync::Arc;

use device_types::event::{Audience, Event};
use model::DeviceStatus;
use plan::BlockedSubject;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::ReconcilerTask;
use crate::logs::{LogSource, LogSources};
use crate::status;
use crate::status_events::{Downloads, between};

pub(super) struct Publication {
    status: watch::Sender<Arc<DeviceStatus>>,
    /// The progress of each download in the last event.
    downloads: Downloads,
    /// Callers that wait until the status includes their command.
    callers: Vec<oneshot::Sender<()>>,
    /// Whether the cloud is being polled for a new target.
    is_checking: bool,
    /// The blockers in the last plan.
    waiting_on: Vec<BlockedSubject>,
}

impl Publication {
    pub(super) fn new(status: watch::Sender<Arc<DeviceStatus>>) -> Self {
        Publication {
            status,
            downloads: Downloads::default(),
            callers: Vec::new(),
            is_checking: false,
            waiting_on: Vec::new(),
        }
    }

    /// Sends the events that lead from no status at all to the first one.
    pub(super) fn begin(&mut self, local_mode: bool, on_event: impl Fn(Audience, Event)) {
        let first = Arc::clone(&self.status.borrow());
        self.send_changes(&DeviceStatus::default(), &first, local_mode, on_event);
    }

    /// Publishes a status, after the events that lead to it, unless it is the same as the last.
    pub(super) fn replace(
        &mut self,
        status: DeviceStatus,
        local_mode: bool,
        on_event: impl Fn(Audience, Event),
    ) {
        let before = Arc::clone(&self.status.borrow());
        if *before != status {
            self.send_changes(&before, &status, local_mode, on_event);
            self.status.send_replace(Arc::new(status));
        }
    }

    fn send_changes(
        &mut self,
        before: &DeviceStatus,
        after: &DeviceStatus,
        local_mode: bool,
        on_event: impl Fn(Audience, Event),
    ) {
        let changes = between(before, after, local_mode);
        let downloads = self.downloads.due(after, Instant::now());
        for (audience, event) in downloads.into_iter().chain(changes) {
            on_event(audience, event);
        }
    }

    /// Answers a caller when the status includes its command.
    pub(super) fn answer_later(&mut self, caller: oneshot::Sender<()>) {
        self.callers.push(caller);
    }

    /// Sets whether the cloud is being polled for a new target.
    pub(super) fn set_checking(&mut self, is_checking: bool) {
        self.is_checking = is_checking;
    }

    /// Replaces the blockers with those of another plan; without a plan there are none.
    pub(super) fn set_blockers(&mut self, waiting_on: Vec<BlockedSubject>) {
        self.waiting_on = waiting_on;
    }

    pub(super) fn answer_callers(&mut self) {
        for caller in self.callers.drain(..) {
            // The caller may have gone.
            let _ = caller.send(());
        }
    }
}

impl ReconcilerTask {
    /// Computes the status and publishes it, together with the data for readers of logs and of health.
    pub(super) fn publish(&mut self, applying: bool) {
        let telemetry = &self.context.telemetry;
        // Outside local mode, only the cloud receives the log (docs/spec/device.md#local-logs).
        telemetry.hub.set_silent(self.local_mode.is_off());
        let services: Vec<_> = self.view.services().collect();
        let sources: LogSources = services
            .iter()
            .map(|service| {
                let source = LogSource {
                    engine: service.engine,
                    service: service.key.service.clone(),
                    id: service.id,
                };
                (service.container.clone(), source)
            })
            .collect();
        telemetry.hub.set_sources(sources);
        let status = status::build(&status::StatusInputs {
            services,
            images: self.view.images().collect(),
            desired: self.target.desired(),
            commits: &self.stored.commits,
            busy: &self.in_flight.subjects(),
            service_states: &self.in_flight.service_states,
            progress: telemetry.progress.all(),
            waiting_on: &self.publication.waiting_on,
            acting: self.actions.apps().into_iter().collect(),
            rejected: self.target.trials.rejected_releases(),
            rejected_os: self.host.os.rejected(self.effective_os()),
            update: status::UpdateProgress {
                applying,
                checking: self.publication.is_checking,
                downloaded: self.target.has_downloaded,
                failed: self.retries.has_failed_steps(),
            },
        });
        let local_mode = self.local_mode.is_on();
        self.publication
            .replace(status, local_mode, |audience, event| {
                telemetry.send_event(audience, event)
            });
        let silent = self.view.silent_engines();
        telemetry.health.set(silent, self.in_flight.oldest_step());
        self.publication.answer_callers();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_status_is_published_once_and_its_events_come_before_it() {
        let (sender, mut receiver) = watch::channel(Arc::default());
        let mut publication = Publication::new(sender);
        let events = RefCell::new(Vec::new());
        let status = || DeviceStatus {
            applying: true,
            ..DeviceStatus::default()
        };
        let observed = receiver.clone();
        let on_event = |_, event| {
            assert!(!observed.borrow().applying);
            events.borrow_mut().push(event);
        };
        publication.replace(status(), false, on_event);
        assert!(receiver.borrow_and_update().applying);
        assert_eq!(events.borrow().len(), 1);
        publication.replace(status(), false, on_event);
        assert!(!receiver.has_changed().unwrap());
        assert_eq!(events.borrow().len(), 1);
    }

    #[test]
    fn each_caller_is_answered_once() {
        let (sender, _receiver) = watch::channel(Arc::default());
        let mut publication = Publication::new(sender);
        let (caller, mut answer) = oneshot::channel();
        publication.answer_later(caller);
        assert!(answer.try_recv().is_err());
        publication.answer_callers();
        assert_eq!(answer.try_recv(), Ok(()));
        assert!(publication.callers.is_empty());
    }
}
