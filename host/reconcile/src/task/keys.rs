//! API keys of services. If a key was replaced, new containers get the new one, and running ones keep the old one until
//! the next update (docs/spec/device.md#keys-regenerate). The key of a service that is gone is forgotten
//! (docs/spec/device.md#keys-scope).

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{AppId, ServiceName};

use super::ReconcilerTask;
use crate::messages::ActiveTarget;

impl ReconcilerTask {
    /// Puts the target with the new key in force, without beginning an update.
    pub(super) fn take_new_keys(&mut self, mut target: ActiveTarget) {
        if self.local_mode.is_leaving() {
            self.target.resume_with(target);
            return;
        }
        self.replace_unhealthy(&mut target.desired);
        let services = self.view.services();
        let in_use: BTreeSet<String> = services.filter_map(|service| service.digest).collect();
        self.target.take_new_keys(&target.desired, &in_use);
    }

    /// Forgets the keys of services that no target names and that have no container. Called while the device is idle.
    pub(super) fn forget_keys(&mut self) {
        if !self.view.all_answer() {
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
            let forgotten = context.persistence.call(move |store| {
                for (app, service) in store.services_with_keys().difference(&needed) {
                    store.forget_service_key(*app, service)?;
                    tracing::info!(%app, %service, "the service is gone: its API key is no longer valid");
                }
                Ok(())
            });
            if let Err(why) = forgotten.await {
                // They are checked again when services have changed, and at the next start.
                tracing::warn!("failed to delete the API keys of removed services: {why}");
            }
        });
    }
}
