//! What is done with services beside the target.

use std::collections::BTreeMap;

use engine::EngineError;
use model::compose::EXTRA_FIRMWARE;
use model::{Action, ActionError, ContainerId, error_chain};
use tokio::sync::oneshot;

use super::{Reconciler, stopping};
use crate::messages::Command;

impl Reconciler {
    /// Does something with the services of one app beside the target, and answers when it is done. It
    /// goes on where the caller does not wait.
    ///
    /// # Errors
    /// [`ActionError::Locked`] where an update lock is in the way: nothing was done.
    pub async fn act(&self, action: Action) -> Result<(), ActionError> {
        let (answer, answered) = oneshot::channel();
        self.command(Command::Act(action, answer));
        match answered.await {
            Ok(outcome) => outcome,
            Err(_) => Err(stopping()),
        }
    }

    /// Removes every volume of ours that no container uses and no target names (docs/spec/device.md#cleanup-volumes).
    ///
    /// # Errors
    /// Why one could not be removed; others may have been.
    pub async fn clean_up_volumes(&self) -> Result<(), String> {
        let context = &self.inner.context;
        let (asked, answered) = oneshot::channel();
        self.command(Command::WantedVolumes(asked));
        let mut wanted = answered.await.map_err(|_| stopping().to_string())?;
        // In local mode the fleet's volumes wait for its end.
        if let Some(cloud) = &context.channels.targets.borrow().cloud {
            let volumes = cloud
                .desired
                .apps
                .values()
                .flat_map(|app| app.volumes.values());
            wanted.extend(volumes.map(|volume| volume.engine_name.clone()));
        }
        for engine in context.engines.all() {
            let failed = |error: EngineError| error_chain(&error);
            for volume in engine.volumes().await.map_err(failed)? {
                if wanted.contains(&volume.name) || volume.name == EXTRA_FIRMWARE {
                    continue;
                }
                match engine.remove_volume(&volume.name).await {
                    Ok(()) => context
                        .telemetry
                        .hub
                        .system(format!("Removed volume '{}'", volume.name)),
                    Err(EngineError::InUse { .. }) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        self.command(Command::LookAgain);
        Ok(())
    }

    /// The environment that a container was made with.
    ///
    /// # Errors
    /// Where no engine has it, or none answers.
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

    /// Takes the update locks of all apps; answers once they are held, with what resolves when all
    /// services have been stopped as well. Nothing is changed from then on until
    /// [`Self::resume`].
    ///
    /// # Errors
    /// [`ActionError::Locked`] where an update lock is in the way: nothing was done.
    pub async fn quiesce(
        &self,
        force: bool,
    ) -> Result<impl Future<Output = ()> + Send + use<>, ActionError> {
        let (locked, answered) = oneshot::channel();
        let (stopped, all_stopped) = oneshot::channel();
        self.command(Command::Quiesce {
            force,
            locked,
            stopped,
        });
        match answered.await {
            // A loop that ends meanwhile stops nothing more.
            Ok(outcome) => outcome.map(|()| async move {
                let _ = all_stopped.await;
            }),
            Err(_) => Err(stopping()),
        }
    }

    /// Goes on after [`Self::quiesce`]: locks are released and services started again.
    pub fn resume(&self) {
        self.command(Command::Resume);
    }
}
