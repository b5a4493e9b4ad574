//! Operations on services, in addition to the target.

use std::collections::BTreeMap;

use engine::EngineError;
use model::compose::EXTRA_FIRMWARE;
use model::{Action, ActionError, ContainerId, error_chain};
use tokio::sync::oneshot;

use super::{Reconciler, stopping};
use crate::messages::Command;

impl Reconciler {
    /// Does something with the services of one app, in addition to the target, and returns when it is done. It
    /// continues even if the caller does not wait.
    ///
    /// # Errors
    /// Returns [`ActionError::Locked`] if an update lock prevents it: then nothing was done.
    pub async fn act(&self, action: Action) -> Result<(), ActionError> {
        let outcome = self.ask(|reply| Command::Act(action, reply)).await;
        outcome.unwrap_or_else(|_| Err(stopping()))
    }

    /// Removes every volume of ours that no container uses and no target names (docs/spec/device.md#cleanup-volumes).
    ///
    /// # Errors
    /// Returns the reason why a volume could not be removed; others may have been.
    pub async fn clean_up_volumes(&self) -> Result<(), String> {
        let context = &self.inner.context;
        let names = self.ask(Command::TargetVolumes).await;
        let mut names = names.map_err(|_| stopping().to_string())?;
        // In local mode, the fleet's volumes are kept until it ends.
        if let Some(cloud) = &self.targets().borrow().cloud {
            let apps = cloud.desired.apps.values();
            let volumes = apps.flat_map(|app| app.volumes.values());
            names.extend(volumes.map(|volume| volume.engine_name.clone()));
        }
        for engine in context.engines.all() {
            let failed = |error: EngineError| error_chain(&error);
            for volume in engine.volumes().await.map_err(failed)? {
                if names.contains(&volume.name) || volume.name == EXTRA_FIRMWARE {
                    continue;
                }
                match engine.remove_volume(&volume.name).await {
                    Ok(()) => context.log(format!("Removed volume '{}'", volume.name)),
                    Err(EngineError::InUse { .. }) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        self.command(Command::LookAgain);
        Ok(())
    }

    /// Returns the environment that a container was created with.
    ///
    /// # Errors
    /// If no engine has the container, or none answers.
    pub async fn environment(
        &self,
        container: &ContainerId,
    ) -> Result<BTreeMap<String, String>, String> {
        let mut reason = format!("no engine has the container `{container}`");
        for engine in self.inner.context.engines.all() {
            match engine.environment(container).await {
                Ok(environment) => return Ok(environment),
                Err(EngineError::NotFound { .. }) => {}
                Err(error) => reason = error_chain(&error),
            }
        }
        Err(reason)
    }

    /// Takes the update locks of all apps. Returns once they are held, with a future that resolves when all services
    /// have been stopped as well. Nothing is changed from then on until [`Self::resume`].
    ///
    /// # Errors
    /// Returns [`ActionError::Locked`] if an update lock prevents it: then nothing was done.
    pub async fn quiesce(
        &self,
        force: bool,
    ) -> Result<impl Future<Output = ()> + Send + use<>, ActionError> {
        let (stopped, all_stopped) = oneshot::channel();
        let quiesce = |locked| Command::Quiesce {
            force,
            locked,
            stopped,
        };
        let locked = self.ask(quiesce).await;
        locked.unwrap_or_else(|_| Err(stopping()))?;
        // If the loop ends meanwhile, it stops nothing more.
        Ok(async move {
            let _ = all_stopped.await;
        })
    }

    /// Continues after [`Self::quiesce`]: locks are released and services started again.
    pub fn resume(&self) {
        self.command(Command::Resume);
    }
}
