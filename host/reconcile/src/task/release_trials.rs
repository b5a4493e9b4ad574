//! The loop's part in trying releases: it examines them in each pass, queries the plugins, stores the decisions, and
//! goes back to the last healthy release (docs/spec/device.md#release-health).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use device_types::Moment;
use device_types::event::{Audience, Event, ReleaseUnhealthy};
use device_types::plan::Blocker;
use model::{AppUuid, Commit, DesiredApp, DesiredState, RejectedRelease};
use tokio::time::Instant;

use super::ReconcilerTask;
use crate::InstalledRelease;
use crate::messages::{Message, RecordWrite};
use crate::release_trials::{AppObservation, TrialRules, TrialStep};
use crate::service_states::state_of_services;

/// The time for a release if plugins judge it and no variable sets the time.
const TIME_OF_PLUGINS: Duration = Duration::from_secs(300);
/// How long the loop waits before it repeats a failed write of a record.
const WRITE_AGAIN: Duration = Duration::from_secs(60);

impl ReconcilerTask {
    /// Replaces releases of a target that were not healthy with healthy ones.
    pub(super) fn replace_unhealthy(&mut self, desired: &mut DesiredState) {
        // In local mode there are other apps, and the developer alone decides.
        if self.local_mode.is_on() {
            self.target.trials.substitute_none();
        } else {
            let secrets = self.context.branding.secret_variables();
            self.target.trials.substitute(desired, &secrets);
        }
    }

    /// Returns the requirements for new releases; `None` if every release counts as healthy.
    pub(super) fn trial_rules(&self) -> Option<TrialRules> {
        let time = self.target.settings.release_health_time;
        let has_gates = self.context.host.judges_releases();
        let time = time.or(has_gates.then_some(TIME_OF_PLUGINS))?;
        Some(TrialRules { time, has_gates })
    }

    /// Examines all releases of the cloud's target, and acts on the results.
    pub(super) fn look_at_releases(&mut self) {
        // In local mode, the developer alone decides.
        let is_due = self.local_mode.is_off() && self.view.all_answer();
        if !is_due || self.target.desired().is_none() {
            return;
        }
        let apps = self.target.apps();
        let ours = apps.filter(|app| !app.not_ours && !app.rejected);
        let observations = ours
            .map(|app| (app.uuid.clone(), self.observe_app(app)))
            .collect();
        let (rules, now) = (self.trial_rules(), Instant::now());
        for (app, step) in self.target.look_at_releases(&observations, rules, now) {
            match step {
                TrialStep::AskGates => self.ask_gates(&app),
                TrialStep::Accept => self.context.log(format!(
                    "Release {} of app {} is healthy",
                    shown(app.commit.as_ref()),
                    app.id
                )),
                TrialStep::Reject { rejected, back_to } => {
                    self.context.log(format!(
                        "Release {} of app {} is not healthy: {}. The device goes back to release {}",
                        rejected.commit,
                        app.id,
                        rejected.reason,
                        shown(back_to.as_ref())
                    ));
                    self.send_unhealthy(&app, rejected, back_to);
                }
                TrialStep::Complain(rejected) => {
                    self.context.log(format!(
                        "Release {} of app {} is not healthy: {}. The device has no healthy release to go back to",
                        rejected.commit, app.id, rejected.reason
                    ));
                    self.send_unhealthy(&app, rejected, None);
                }
            }
        }
        self.write_release_records();
    }

    fn observe_app(&self, app: &DesiredApp) -> AppObservation {
        let containers = self.view.services_of(&app.uuid);
        let has_begun = containers.iter().any(|container| {
            let release = container.release.as_ref();
            release.is_some_and(|release| release.commit == app.commit)
        });
        AppObservation {
            has_begun,
            is_whole: self.stored.commits.get(&app.uuid) == app.commit.as_ref(),
            is_busy: self.actions.has(&app.uuid)
                || self.host.quiesce.is_some()
                || self.in_flight.changes_image_of(app),
            services: state_of_services(app, &containers),
        }
    }

    fn ask_gates(&self, app: &DesiredApp) {
        let Some(commit) = app.commit.clone() else {
            return;
        };
        let release = InstalledRelease {
            app_id: app.id,
            app: app.uuid.clone(),
            services: app.services.keys().cloned().collect(),
            commit: commit.clone(),
        };
        let context = Arc::clone(&self.context);
        tokio::spawn(async move {
            let verdict = context.host.judge_release(&release).await;
            context.send(Message::ReleaseVerdict(release.app, commit, verdict));
        });
    }

    fn send_unhealthy(&self, app: &DesiredApp, rejected: RejectedRelease, back_to: Option<Commit>) {
        let event = Event::ReleaseUnhealthy(ReleaseUnhealthy {
            app_id: app.id,
            commit: rejected.commit,
            message: rejected.reason,
            back_to,
        });
        let telemetry = &self.context.telemetry;
        telemetry.send_event(Audience::App(app.id), event);
    }

    /// Writes the records that have changed, one write per app at a time.
    fn write_release_records(&mut self) {
        for (app, record) in self.target.trials.take_unwritten() {
            let context = Arc::clone(&self.context);
            tokio::spawn(async move {
                let written = context.persistence.put_release_record(app.clone(), record);
                let outcome = match written.await {
                    Ok(()) => RecordWrite::Done,
                    Err(why) => {
                        tracing::error!(%app, "failed to note which releases of app {app} are healthy: {why}");
                        RecordWrite::Failed
                    }
                };
                context.send(Message::ReleaseRecord(app.clone(), outcome));
                if outcome == RecordWrite::Failed {
                    tokio::time::sleep(WRITE_AGAIN).await;
                    context.send(Message::ReleaseRecord(app, RecordWrite::Again));
                }
            });
        }
    }

    /// Handles the outcome of writing a record: the decision takes effect in any case.
    pub(super) fn release_record(&mut self, app: AppUuid, write: RecordWrite) {
        let secrets = self.context.branding.secret_variables();
        let is_of_cloud = !self.local_mode.is_on();
        if is_of_cloud && self.target.go_back(&app, &secrets) {
            self.retries.forget_steps();
            self.publish_settings();
        }
        match write {
            RecordWrite::Done => self.target.trials.written(&app),
            RecordWrite::Failed => {}
            RecordWrite::Again => self.target.trials.write_again(app),
        }
    }

    /// Tries releases again that were not healthy, since somebody forces it.
    pub(super) fn try_releases_again(&mut self) {
        self.host.os.update.try_again();
        if self.target.try_releases_again() {
            self.retries.forget_steps();
            self.publish_settings();
        }
    }

    /// Returns what delays or reverts the releases of the target, for people.
    pub(super) fn blocked_releases(&self) -> BTreeMap<AppUuid, Blocker> {
        let rules = self.trial_rules();
        let now = Instant::now();
        let apps = self.target.apps().filter_map(|app| {
            let trials = &self.target.trials;
            let blocker = if let Some(rejected) = trials.rejected_release(&app.uuid) {
                Blocker::ReleaseUnhealthy {
                    commit: rejected.commit.clone(),
                    reason: rejected.reason.clone(),
                }
            } else {
                let (until, reason) = trials.on_trial(&app.uuid, rules?)?;
                Blocker::ReleaseOnTrial {
                    until: Moment::after(until.saturating_duration_since(now)),
                    reason,
                }
            };
            Some((app.uuid.clone(), blocker))
        });
        apps.collect()
    }
}

fn shown(commit: Option<&Commit>) -> String {
    commit.map_or_else(|| "without a commit".to_owned(), Commit::to_string)
}
