//! Named volumes.

use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{ListVolumesOptions, RemoveVolumeOptions};
use model::{CONFIG_DIGEST_LABEL, EngineKind, Volume};

use super::connect::refusal;
use super::{Docker, path_part};
use crate::{EngineError, VolumeSpec};

impl Docker {
    pub(super) async fn list_volumes(&self) -> Result<Vec<Volume>, EngineError> {
        let options = ListVolumesOptions {
            filters: Some(self.ours()),
        };
        let api = self.connection.client().await?.api;
        let found = api
            .list_volumes(Some(options))
            .await
            .map_err(|error| self.connection.failed("list the volumes", error))?;
        Ok(found
            .volumes
            .unwrap_or_default()
            .into_iter()
            .map(|volume| Volume {
                engine: EngineKind::Docker,
                name: volume.name,
                labels: volume.labels.into_iter().collect(),
            })
            .filter(|volume| self.scope.covers(&volume.labels))
            .collect())
    }

    /// The engine answers an existing volume as if it had just been made, so the labels of the answer
    /// are looked at.
    pub(super) async fn make_volume(&self, spec: &VolumeSpec<'_>) -> Result<(), EngineError> {
        let name = path_part("volume's name", spec.name)?;
        let config = spec.config;
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            driver: (!config.driver.is_empty()).then(|| config.driver.clone()),
            driver_opts: Some(config.driver_opts.clone().into_iter().collect()),
            labels: Some(config.labels.clone().into_iter().collect()),
            ..Default::default()
        };
        let api = self.connection.client().await?.api;
        let answered = api
            .create_volume(request)
            .await
            .map_err(|error| match refusal(&error) {
                // It exists with another driver.
                Some((409, _)) => taken(name),
                Some((400, message)) => EngineError::Invalid(format!(
                    "the volume `{name}` cannot be created: {}",
                    message.trim()
                )),
                _ => self
                    .connection
                    .failed(format!("create the volume `{name}`"), error),
            })?;
        let digest = self.scope.branding.label(CONFIG_DIGEST_LABEL);
        if answered.labels.get(&digest) == config.labels.get(&digest)
            && self.scope.covers(&answered.labels.into_iter().collect())
        {
            Ok(())
        } else {
            Err(taken(name))
        }
    }

    pub(super) async fn drop_volume(&self, name: &str) -> Result<(), EngineError> {
        let name = path_part("volume's name", name)?;
        let action = || format!("remove the volume `{name}`");
        let api = self.connection.client().await?.api;
        let labels = match api.inspect_volume(name).await {
            Ok(volume) => volume.labels,
            Err(error) if matches!(refusal(&error), Some((404, _))) => return Ok(()),
            Err(error) => return Err(self.connection.failed(action(), error)),
        };
        if !self.scope.covers(&labels.into_iter().collect()) {
            // To us it is not there.
            return Ok(());
        }
        match api.remove_volume(name, None::<RemoveVolumeOptions>).await {
            Ok(()) => Ok(()),
            Err(error) => match refusal(&error) {
                Some((404, _)) => Ok(()),
                Some((409, _)) => Err(EngineError::InUse {
                    what: format!("the volume `{name}`"),
                }),
                _ => Err(self.connection.failed(action(), error)),
            },
        }
    }
}

fn taken(name: &str) -> EngineError {
    EngineError::Conflict {
        what: format!("a volume named `{name}`"),
        hint: format!(
            "it has another owner or configuration; save its contents and remove it with `docker volume rm {name}`"
        ),
    }
}
