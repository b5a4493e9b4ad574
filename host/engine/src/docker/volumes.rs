//! Named volumes.

use async_trait::async_trait;
use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{ListVolumesOptions, RemoveVolumeOptions};
use model::{CONFIG_DIGEST_LABEL, EngineKind, Volume};

use super::connect::{is_not_found, refusal};
use super::{Docker, path_part};
use crate::{EngineError, VolumeSpec, Volumes};

#[async_trait]
impl Volumes for Docker {
    async fn volumes(&self) -> Result<Vec<Volume>, EngineError> {
        let options = ListVolumesOptions {
            filters: Some(self.ours()),
        };
        let answer = self.api().await?.list_volumes(Some(options)).await;
        let list = answer.map_err(|error| self.failed("list the volumes", error))?;
        let volumes = list.volumes.unwrap_or_default().into_iter();
        Ok(volumes
            .map(|volume| Volume {
                engine: EngineKind::Docker,
                name: volume.name,
                labels: volume.labels.into_iter().collect(),
            })
            .filter(|volume| self.ownership.covers(&volume.labels))
            .collect())
    }

    /// Creates the volume. For an existing one the engine answers as if it had just been created,
    /// so the labels of the answer are checked.
    async fn create_volume(&self, spec: &VolumeSpec<'_>) -> Result<(), EngineError> {
        let name = path_part("volume's name", spec.name)?;
        let config = spec.config;
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            driver: (!config.driver.is_empty()).then(|| config.driver.clone()),
            driver_opts: Some(config.driver_opts.clone().into_iter().collect()),
            labels: Some(config.labels.clone().into_iter().collect()),
            ..Default::default()
        };
        let answer = self.api().await?.create_volume(request).await;
        let volume = answer.map_err(|error| match refusal(&error) {
            // It exists with another driver.
            Some((409, _)) => name_taken(name),
            Some((400, message)) => EngineError::Invalid(format!(
                "the volume `{name}` cannot be created: {}",
                message.trim()
            )),
            _ => self.failed(format!("create the volume `{name}`"), error),
        })?;
        let digest = self.ownership.branding.label(CONFIG_DIGEST_LABEL);
        if volume.labels.get(&digest) == config.labels.get(&digest)
            && self.covers(Some(volume.labels))
        {
            Ok(())
        } else {
            Err(name_taken(name))
        }
    }

    async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        let name = path_part("volume's name", name)?;
        let action = || format!("remove the volume `{name}`");
        let api = self.api().await?;
        let labels = match api.inspect_volume(name).await {
            Ok(volume) => volume.labels,
            Err(error) if is_not_found(&error) => return Ok(()),
            Err(error) => return Err(self.failed(action(), error)),
        };
        if !self.covers(Some(labels)) {
            // For us it does not exist.
            return Ok(());
        }
        match api.remove_volume(name, None::<RemoveVolumeOptions>).await {
            Ok(()) => Ok(()),
            Err(error) => match refusal(&error) {
                Some((404, _)) => Ok(()),
                Some((409, _)) => Err(EngineError::in_use(format!("the volume `{name}`"))),
                _ => Err(self.failed(action(), error)),
            },
        }
    }
}

fn name_taken(name: &str) -> EngineError {
    EngineError::Conflict {
        what: format!("a volume named `{name}`"),
        hint: format!(
            "it has another owner or configuration; save its contents and remove it with `docker volume rm {name}`"
        ),
    }
}
