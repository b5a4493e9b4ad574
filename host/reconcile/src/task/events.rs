//! The loop's part in sending events.

use std::collections::BTreeSet;
use std::time::Duration;

use device_types::Moment;
use device_types::event::{Audience, Event, LockWait, StepFailed, UpdatePostponed};
use model::{AppId, AppUuid, DesiredApp};
use plan::{Subject, has_component};

use super::ReconcilerTask;
use crate::UpdatePostponement;

impl ReconcilerTask {
    /// Reports that something failed, and is tried again after `retry_in`.
    pub(super) fn send_failure(
        &self,
        subject: &Subject,
        reason: &str,
        failures: u32,
        retry_in: Duration,
    ) {
        let message = reason.to_owned();
        let retry_at = Moment::after(retry_in);
        if let Subject::Locks(app) = subject {
            if let Some(app_id) = self.id_of(app) {
                let wait = LockWait {
                    app_id,
                    message,
                    retry_at,
                };
                let telemetry = &self.context.telemetry;
                telemetry.send_event(Audience::App(app_id), Event::LockWait(wait));
            }
            return;
        }
        let failed = |app_id| {
            Event::StepFailed(StepFailed {
                app_id,
                subject: subject.to_string(),
                message: message.clone(),
                failures,
                retry_at,
            })
        };
        let telemetry = &self.context.telemetry;
        let apps = self.apps_of(subject);
        if apps.is_empty() {
            telemetry.send_event(Audience::Owner, failed(None));
        }
        for app in apps {
            telemetry.send_event(Audience::App(app), failed(Some(app)));
        }
    }

    /// Reports that a plugin postpones the update of an app.
    pub(super) fn send_postponement(&self, app: &AppUuid, postponement: &UpdatePostponement) {
        if let Some(app_id) = self.id_of(app) {
            let event = Event::UpdatePostponed(UpdatePostponed {
                app_id,
                plugin: postponement.plugin.clone(),
                message: postponement.reason.clone(),
                retry_at: Moment::after(postponement.delay),
            });
            let telemetry = &self.context.telemetry;
            telemetry.send_event(Audience::App(app_id), event);
        }
    }

    /// Returns the apps concerned by a step about `subject`; none if no desired app is concerned.
    fn apps_of(&self, subject: &Subject) -> BTreeSet<AppId> {
        let concerns = |app: &DesiredApp| match subject {
            Subject::Image(image) => {
                let mut services = app.services.values();
                services.any(|service| service.config.image == *image)
            }
            Subject::Component(kind, _, name) => has_component(app, *kind, name),
            _ => false,
        };
        match subject {
            Subject::Service(service) => self.id_of(&service.app).into_iter().collect(),
            Subject::App(app) | Subject::Locks(app) => self.id_of(app).into_iter().collect(),
            Subject::Container(id) => self.view.app_of(id).into_iter().collect(),
            _ => {
                let apps = self.target.apps();
                apps.filter(|app| concerns(app)).map(|app| app.id).collect()
            }
        }
    }

    fn id_of(&self, app: &AppUuid) -> Option<AppId> {
        let desired = self.target.app(app).map(|app| app.id);
        desired.or_else(|| Some(self.view.services_of(app).first()?.app_id))
    }
}
