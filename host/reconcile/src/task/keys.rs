//! API keys of services. If a key was replaced, new containers get the new one, and running ones keep the old one until
//! the next update (docs/spec/device.md#keys-regenerate). The key of a service that is gone is forgotten
//! (docs/spec/device.md#keys-scope).

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{AppId, DesiredApp, DesiredService, ServiceName};

use super::ReconcilerTask;
use crate::messages::ActiveTarget;

impl ReconcilerTask {
    /// Puts the target with the new key in force, without beginning an update.
    pub(super) fn take_new_keys(&mut self, mut target: ActiveTarget) {
        if self.local_mode.is_leaving() {
            self.target.resumes = Some(target);
            return;
        }
        self.replace_unhealthy(&mut target.desired);
        let services = self.view.services();
        let in_use: BTreeSet<String> = services.filter_map(|service| service.digest).collect();
        let Some(desired) = &mut self.target.desired else {
            return;
        };
        let services = desired.apps.values_mut();
        for service in services.flat_map(|app| app.services.values_mut()) {
            let next = target.desired.apps.get(&service.key.app);
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

    /// Gives the services of an app that is restored their current API keys: the keys they were created with are no
    /// longer valid.
    pub(super) fn give_new_keys(&self, restored: &mut DesiredApp) {
        let Some(target) = self.target.app(&restored.uuid) else {
            return;
        };
        let variables = self.context.branding.secret_variables();
        for service in restored.services.values_mut() {
            let Some(desired) = target.services.get(&service.key.service) else {
                continue;
            };
            if self
                .target
                .replaced_keys
                .contain(&service.key, &service.digest)
            {
                // Nothing else differs, so the next update finds it as desired.
                *service = DesiredService {
                    image_id: service.image_id,
                    release: service.release,
                    commit: service.commit.clone(),
                    ..desired.clone()
                };
                continue;
            }
            for variable in &variables {
                let value = service.config.environment.get_mut(variable);
                if let (Some(value), Some(key)) = (value, desired.config.environment.get(variable))
                {
                    value.clone_from(key);
                }
            }
        }
    }

    /// Forgets the keys of services that no target names and that have no container. Called while the device is idle.
    pub(super) fn forget_keys(&mut self) {
        if !self.view.current().all_answer() {
            return;
        }
        let context = &self.context;
        let with_containers = self.view.services().map(|it| (it.app_id, it.key.service));
        // The targets may be newer than the loop's.
        let apps = self.target.apps();
        let services = apps.flat_map(|app| app.services.keys().map(|name| (app.id, name.clone())));
        let mut needed: BTreeSet<(AppId, ServiceName)> = with_containers.chain(services).collect();
        needed.extend(context.channels.targets.borrow().services());
        needed.extend(self.target.trials.services_to_keep());
        if self.stored.services_with_keys.as_ref() == Some(&needed) {
            return;
        }
        self.stored.services_with_keys = Some(needed.clone());
        let context = Arc::clone(context);
        tokio::spawn(async move {
            let _one_at_a_time = context.channels.setting.lock().await;
            needed.extend(context.channels.targets.borrow().services());
            let forgotten = context.journal.call(move |store| {
                for (app, service) in store.services_with_keys().difference(&needed) {
                    store.forget_service_key(*app, service)?;
                    tracing::info!(%app, %service, "the service is gone: its API key is no longer valid");
                }
                Ok(())
            });
            if let Err(why) = forgotten.await {
                // They are checked again when services have changed, and at the next start.
                tracing::warn!("failed to forget the API keys of services that are gone: {why}");
            }
        });
    }
}
