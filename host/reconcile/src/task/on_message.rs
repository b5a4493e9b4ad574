//! Messages from steps, listings and the store, and their effects on the loop's state.

use std::path::PathBuf;
use std::sync::Arc;

use model::AppUuid;
use plan::Subject;
use tokio::time::Instant;

use super::ReconcilerTask;
use super::retries::BackOff;
use crate::UpdatePostponement;
use crate::locks;
use crate::messages::{Message, StepFailure};

impl ReconcilerTask {
    pub(super) fn on_message(&mut self, message: Message) {
        match message {
            Message::Listed(listing) => self.listed(listing),
            Message::Effect(effect) => self.view.apply(effect),
            Message::ServiceState(service, state) => {
                self.in_flight.service_states.insert(service, state);
            }
            Message::Kind(image, kind) => self.target.set_image_kind(image, kind),
            Message::Stored(record) => self.stored.apply(record),
            Message::ReleaseVerdict(app, commit, verdict) => {
                let trials = &mut self.target.trials;
                trials.answered(&app, &commit, verdict, Instant::now());
            }
            Message::ReleaseRecord(app, write) => self.release_record(app, write),
            Message::LocksTaken(app, guard) => {
                self.held_locks.guards.entry(app).or_default().push(guard);
            }
            Message::LockGone(app) => {
                self.held_locks.watches.remove(&app);
                // It needs the locks of all apps.
                self.retries.forget_step(&Subject::Reboot);
                self.retries.forget_step(&Subject::Locks(app));
            }
            Message::Finished(subject, outcome) => self.finished(subject, outcome),
            Message::ActionWritten(app, number, outcome) => {
                self.action_written(&app, number, outcome);
            }
            Message::LeftLocalMode => self.left_local_mode(),
            Message::HostLooked(look) => self.host_looked(look),
            Message::HostChanged => self.host.mark(),
            Message::OsLooked(look) => self.os_looked(look),
            Message::OsDone(action, outcome) => self.os_done(action, outcome),
            Message::OsActivated(outcome) => self.os_activated(outcome),
            Message::OsVerdict(app, verdict) => {
                self.host.os.update.answered(&app, verdict, Instant::now());
            }
            Message::OsRecord(write) => self.os_record(write),
            Message::NotRebooted => self.not_rebooted(),
            Message::Command(command) => self.on_command(command),
        }
    }

    pub(super) fn finished(&mut self, subject: Subject, outcome: Result<(), StepFailure>) {
        let is_pull = self.in_flight.end(&subject);
        if let Subject::Image(image) = &subject {
            let telemetry = &self.context.telemetry;
            telemetry.progress.remove(image);
            let is_cancelled = matches!(&outcome, Err(failure) if failure.cancelled);
            if is_pull && !is_cancelled {
                telemetry.counters.download_ended(outcome.is_ok());
            }
            if is_pull && outcome.is_ok() {
                self.target.image_pulled(image.clone());
            }
        }
        if let Subject::Locks(app) = &subject
            && self.held_locks.updates.end_locking(app, outcome.is_ok())
        {
            self.context.host.note_begun_update(app);
        }
        if let Subject::Locks(app) = &subject
            && (self.locks_for_action(app, &outcome) || self.locks_for_quiesce(app, &outcome))
        {
            return;
        }
        if subject == Subject::Reboot && self.os_held_up_reboot(&outcome) {
            return;
        }
        match outcome {
            Err(StepFailure {
                postponement: Some(postponement),
                ..
            }) => self.postponed(subject, *postponement),
            Ok(()) => {
                self.retries.forget_step(&subject);
                if let Subject::Locks(app) = &subject {
                    self.held_locks.waits.acquired(app);
                }
            }
            Err(failure) if failure.cancelled => {
                if matches!(subject, Subject::Image(_)) {
                    self.view.invalidate(subject);
                }
            }
            Err(failure) => self.failed(subject, failure),
        }
    }

    pub(super) fn failed(&mut self, subject: Subject, failure: StepFailure) {
        let poll_interval = self.target.settings.poll_interval;
        let BackOff { count, delay } =
            self.retries
                .step_failed(subject.clone(), &failure, poll_interval);
        let reason = failure.reason;
        self.step_of_action_failed(&subject, &reason);
        tracing::debug!(%subject, failures = count, "{subject} failed, tried again in {delay:?}: {reason}");
        if let Subject::Host(_) | Subject::Reboot | Subject::Os = &subject {
            // No engine knows more of it.
        } else if let Subject::Locks(app) = &subject {
            let seconds = delay.as_secs_f64().ceil();
            self.context.log(format!(
                "Updates are locked, retrying in {seconds}s. Reason: {reason}"
            ));
            if let Some(path) = failure.lock {
                if let Some(days) = self.held_locks.waits.refused(app, Instant::now()) {
                    self.context.telemetry.hub.warning(format!(
                        "The update of app {app} has waited for {days} days for the lock `{}`: GET /v3/locks shows since when; \
                         removing the file, or force, ends the wait",
                        path.display()
                    ));
                }
                self.watch_lock(app.clone(), path);
            }
        } else {
            self.view.invalidate(subject.clone());
        }
        self.context.telemetry.counters.step_failed();
        self.send_failure(&subject, &reason, count, delay);
    }

    /// Records that a plugin postpones the update of an app.
    pub(super) fn postponed(&mut self, subject: Subject, postponement: UpdatePostponement) {
        if let Subject::Locks(app) = &subject {
            self.send_postponement(app, &postponement);
        }
        let UpdatePostponement {
            plugin,
            reason,
            delay,
        } = &postponement;
        self.context.log(format!(
            "The plugin `{plugin}` postpones the update for {}s. Reason: {reason}",
            delay.as_secs()
        ));
        self.retries.postponed(subject, postponement);
    }

    /// Retries as soon as the user's lock is gone.
    pub(super) fn watch_lock(&mut self, app: AppUuid, path: PathBuf) {
        let context = Arc::clone(&self.context);
        let watched = app.clone();
        let watch = tokio::spawn(async move {
            match locks::until_removed(&path).await {
                Ok(()) => context.send(Message::LockGone(watched)),
                Err(error) => tracing::debug!(
                    %error,
                    path = %path.display(),
                    "failed to watch `{}`",
                    path.display()
                ),
            }
        });
        self.held_locks.watch(app, watch.abort_handle());
    }
}
