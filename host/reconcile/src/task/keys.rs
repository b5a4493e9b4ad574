//! Keys to the API that services have replaced: what is made from now on gets the new one, what runs goes on with the
//! old one until the next update (docs/spec/device.md#keys-regenerate).

use std::collections::BTreeSet;

use model::{DesiredApp, DesiredService};

use super::ReconcilerTask;
use crate::messages::ActiveTarget;

impl ReconcilerTask {
    /// Makes the target with the new key what the device is measured by, without beginning an update.
    pub(super) fn take_new_keys(&mut self, wanted: ActiveTarget) {
        if self.local_mode.is_leaving() {
            self.target.resumes = Some(wanted);
            return;
        }
        let services = self.view.services();
        let in_use: BTreeSet<String> = services.filter_map(|service| service.digest).collect();
        let Some(desired) = &mut self.target.desired else {
            return;
        };
        let services = desired.apps.values_mut();
        for service in services.flat_map(|app| app.services.values_mut()) {
            let next = wanted.desired.apps.get(&service.key.app);
            let next = next.and_then(|app| app.services.get(&service.key.service));
            let Some(next) = next.filter(|next| next.digest != service.digest) else {
                continue;
            };
            self.target
                .replaced_keys
                .note(service.key.clone(), service.digest.clone(), &in_use);
            service.clone_from(next);
        }
    }

    /// Gives the services of an app that comes back as it was the keys that they have by now: those that they were
    /// made with open nothing.
    pub(super) fn give_new_keys(&self, restored: &mut DesiredApp) {
        let Some(target) = self.target.app(&restored.uuid) else {
            return;
        };
        let variables = self.context.branding.secret_variables();
        for service in restored.services.values_mut() {
            let Some(wanted) = target.services.get(&service.key.service) else {
                continue;
            };
            if self
                .target
                .replaced_keys
                .contain(&service.key, &service.digest)
            {
                // Nothing else differs, so that the next update finds it as it is to be.
                *service = DesiredService {
                    image_id: service.image_id,
                    release: service.release,
                    commit: service.commit.clone(),
                    ..wanted.clone()
                };
                continue;
            }
            for variable in &variables {
                let value = service.config.environment.get_mut(variable);
                if let (Some(value), Some(key)) = (value, wanted.config.environment.get(variable)) {
                    value.clone_from(key);
                }
            }
        }
    }
}
