//! API keys of services that were replaced.

use std::sync::Arc;
use std::time::Duration;

use model::{AppId, DesiredState, ServiceName};

use super::Reconciler;
use crate::messages::Command;
use crate::persistence::LocalMode;
use crate::target::AcceptedTarget;

/// How long the caller waits: the device may be leaving local mode, which an engine can delay.
const SOON: Duration = Duration::from_secs(10);

impl Reconciler {
    /// Handles a new API key of a service in the store. Returns once new containers of the service get this key, or
    /// after 10 s; existing containers stay in use until the next update (docs/spec/device.md#keys-regenerate).
    pub async fn key_replaced(&self, app: AppId, service: ServiceName) {
        let reconciler = self.clone();
        let taking = tokio::spawn(async move {
            if let Err(why) = reconciler.read_key_again(app, &service).await {
                tracing::error!(
                    %app,
                    %service,
                    "service `{service}` of app {app} gets its new API key with the next target only: {why}"
                );
            }
        });
        let _ = tokio::time::timeout(SOON, taking).await;
    }

    /// Reads the targets again and applies the result for this one service: any other difference is left to the next
    /// target.
    async fn read_key_again(&self, app: AppId, service: &ServiceName) -> Result<(), String> {
        let inner = &self.inner;
        let _one_at_a_time = inner.context.channels.setting.lock().await;
        let targets = self.targets();
        let (local, cloud) = {
            let targets = targets.borrow();
            (targets.local.clone(), targets.cloud.clone())
        };
        let (local, cloud) = (
            self.with_new_key(local, app, service).await?,
            self.with_new_key(cloud, app, service).await?,
        );
        targets.send_modify(|targets| {
            targets.local = local;
            targets.cloud = cloud;
        });
        let target = {
            let targets = targets.borrow();
            match targets.mode {
                LocalMode::On => Some(targets.target_in_local_mode()),
                LocalMode::Leaving | LocalMode::Off => targets.target_of_the_cloud(),
            }
        };
        // If the loop has ended, the next start reads the key.
        let _ = self
            .ask(|reply| Command::KeyReplaced { target, reply })
            .await;
        Ok(())
    }

    async fn with_new_key(
        &self,
        accepted: Option<AcceptedTarget>,
        app: AppId,
        service: &ServiceName,
    ) -> Result<Option<AcceptedTarget>, String> {
        let Some(mut accepted) = accepted else {
            return Ok(None);
        };
        let (reader, target) = (self.reader(), Arc::clone(&accepted.target));
        let reading = tokio::task::spawn_blocking(move || reader.again(&target));
        let read = reading.await.map_err(|error| error.to_string())?;
        let read: DesiredState = read.map_err(|error| error.to_string())?;
        let desired = Arc::make_mut(&mut accepted.desired);
        for held in desired.apps.values_mut().filter(|held| held.id == app) {
            let next = read.apps.get(&held.uuid);
            let next = next.and_then(|next| next.services.get(service));
            if let (Some(held), Some(next)) = (held.services.get_mut(service), next) {
                held.clone_from(next);
            }
        }
        Ok(Some(accepted))
    }
}
