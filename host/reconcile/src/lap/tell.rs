//! The loop's part in telling what happens.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{AppId, AppUuid, DesiredApp, DeviceStatus};
use plan::Subject;
use tokio::time::Instant;

use super::Lap;
use crate::happenings::{Happening, between};
use crate::journal::LocalMode;

impl Lap {
    /// What is about to be published is another status than the last.
    pub(super) fn tell_changes(&mut self, before: &DeviceStatus, after: &DeviceStatus) {
        let local_mode = self.mode == LocalMode::On;
        let changes = between(before, after, local_mode);
        let downloads = self.downloads.tell(after, Instant::now());
        for happening in downloads.into_iter().chain(changes) {
            (self.world.happened)(happening);
        }
    }

    /// Something failed, and is tried again after `retry_in`.
    pub(super) fn tell_failure(
        &self,
        subject: &Subject,
        reason: &str,
        failures: u32,
        retry_in: Duration,
    ) {
        let reason = reason.to_owned();
        if let Subject::Locks(app) = subject {
            if let Some(app) = self.id_of(app) {
                (self.world.happened)(Happening::LockWait {
                    app,
                    reason,
                    retry_in,
                });
            }
            return;
        }
        (self.world.happened)(Happening::StepFailed {
            subject: subject.clone(),
            apps: self.apps_of(subject),
            reason,
            failures,
            retry_in,
        });
    }

    /// The apps that a step about `subject` is for; none where it is for none that is wanted.
    fn apps_of(&self, subject: &Subject) -> BTreeSet<AppId> {
        let concerns = |app: &DesiredApp| match subject {
            Subject::Image(image) => {
                let mut services = app.services.values();
                services.any(|service| service.config.image == *image)
            }
            Subject::Volume(_, name) => app.volumes.values().any(|v| v.engine_name == *name),
            Subject::Network(_, name) => app.networks.values().any(|n| n.engine_name == *name),
            _ => false,
        };
        match subject {
            Subject::Service(service) => self.id_of(&service.app).into_iter().collect(),
            Subject::App(app) | Subject::Locks(app) => self.id_of(app).into_iter().collect(),
            Subject::Container(id) => {
                let mut services = self.view.services();
                let of = services.find(|service| service.container == *id);
                of.map(|service| service.app_id).into_iter().collect()
            }
            _ => {
                let apps = self
                    .desired
                    .iter()
                    .flat_map(|desired| desired.apps.values());
                apps.filter(|app| concerns(app)).map(|app| app.id).collect()
            }
        }
    }

    fn id_of(&self, app: &AppUuid) -> Option<AppId> {
        let desired = self.desired.as_ref()?.apps.get(app).map(|app| app.id);
        desired.or_else(|| Some(self.services_of(app).first()?.app_id))
    }
}
