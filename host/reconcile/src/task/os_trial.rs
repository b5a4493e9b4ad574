//! The loop's part in judging a version of the operating system, and in keeping the record of versions that were tried
//! (docs/spec/device.md#os-update-health).

use std::sync::Arc;
use std::time::Duration;

use model::{AppUuid, DesiredApp};
use plan::Subject;
use tokio::time::Instant;

use super::ReconcilerTask;
use crate::InstalledRelease;
use crate::messages::{Message, RecordWrite, StepFailure};
use crate::os_update::{OsNotice, RejectedOs, TrialApp, TrialOutcome};
use crate::service_states::state_of_services;

/// How long the loop waits before it repeats a failed write of a record.
const WRITE_AGAIN: Duration = Duration::from_secs(60);

impl ReconcilerTask {
    /// Checks whether the running version is healthy, while it is on trial.
    pub(super) fn judge_os(&mut self) {
        let (rules, now) = (self.os_rules(), Instant::now());
        let answers = self.view.all_answer();
        let Some(desired) = self.target.desired() else {
            return;
        };
        let ours = desired
            .apps
            .values()
            .filter(|app| !app.not_ours && !app.rejected);
        let apps = ours.map(|app| TrialApp {
            app: app.uuid.clone(),
            services: if answers {
                state_of_services(app, &self.view.services_of(&app.uuid))
            } else {
                Err("an engine does not answer".to_owned())
            },
        });
        let apps: Vec<TrialApp> = apps.collect();
        match self.host.os.update.judge(&apps, rules, now) {
            None | Some(TrialOutcome::Healthy) => {}
            Some(TrialOutcome::Ask(apps)) => {
                for app in apps {
                    self.ask_gates_of_os(&app);
                }
            }
            Some(TrialOutcome::Unhealthy(reason)) => {
                if let Some(attempt) = self.current_os().attempt {
                    let version = attempt.version;
                    let rejected = RejectedOs { version, reason };
                    self.take_os_notice(OsNotice::Rejected(rejected));
                }
            }
        }
        self.write_os_record();
    }

    fn ask_gates_of_os(&self, app: &AppUuid) {
        let Some(desired) = self.target.app(app) else {
            return;
        };
        let release = match installed(desired) {
            Some(release) => release,
            // Without a release there is nothing to query plugins about.
            None => {
                let healthy = crate::ReleaseVerdict::Healthy;
                self.context.send(Message::OsVerdict(app.clone(), healthy));
                return;
            }
        };
        let context = Arc::clone(&self.context);
        tokio::spawn(async move {
            let verdict = context.host.judge_release(&release).await;
            context.send(Message::OsVerdict(release.app, verdict));
        });
    }

    /// Writes the record if it has changed.
    pub(super) fn write_os_record(&mut self) {
        let Some(record) = self.host.os.update.take_unwritten() else {
            return;
        };
        let context = Arc::clone(&self.context);
        tokio::spawn(async move {
            match context.persistence.put_os_record(record).await {
                Ok(()) => context.send(Message::OsRecord(RecordWrite::Done)),
                Err(why) => {
                    tracing::error!(
                        "failed to note which version of the operating system is being tried: {why}"
                    );
                    context.send(Message::OsRecord(RecordWrite::Failed));
                }
            }
        });
    }

    pub(super) fn os_record(&mut self, write: RecordWrite) {
        match write {
            RecordWrite::Done => self.host.os.update.written(),
            RecordWrite::Again => self.host.os.update.write_again(),
            RecordWrite::Failed => {
                let why = "the store does not record which version is being tried";
                self.failed(Subject::Os, StepFailure::new(why));
                self.host.os.update.write_failed();
                let context = Arc::clone(&self.context);
                tokio::spawn(async move {
                    tokio::time::sleep(WRITE_AGAIN).await;
                    context.send(Message::OsRecord(RecordWrite::Again));
                });
            }
        }
        self.os_activation_written(write);
    }
}

fn installed(app: &DesiredApp) -> Option<InstalledRelease> {
    Some(InstalledRelease {
        app_id: app.id,
        app: app.uuid.clone(),
        services: app.services.keys().cloned().collect(),
        commit: app.commit.clone()?,
    })
}
