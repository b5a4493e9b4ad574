//! Named volumes: folders.

use std::path::PathBuf;

use async_trait::async_trait;
use model::{EngineKind, Mount, Volume, VolumeConfig};
use serde::{Deserialize, Serialize};
use wasm_service::record;

use super::{Wasm, WasmState, folders};
use crate::{EngineError, EngineEvent, VolumeSpec, Volumes};

/// The name of the record, in the volume's folder.
const VOLUME: &str = "volume.json";
/// The folder that services see.
const DATA: &str = "data";

#[derive(Serialize, Deserialize)]
struct VolumeRecord {
    name: String,
    config: VolumeConfig,
}

#[async_trait]
impl Volumes for Wasm {
    async fn volumes(&self) -> Result<Vec<Volume>, EngineError> {
        self.blocking(|shared| Ok(shared.list_volumes())).await
    }

    async fn create_volume(&self, spec: &VolumeSpec<'_>) -> Result<(), EngineError> {
        let (name, config) = (spec.name.to_owned(), spec.config.clone());
        self.blocking(move |shared| shared.make_volume(&name, config))
            .await
    }

    async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        let name = name.to_owned();
        self.blocking(move |shared| shared.remove_volume(&name))
            .await
    }
}

impl WasmState {
    fn list_volumes(&self) -> Vec<Volume> {
        let names = folders::names(&self.folders.volumes).into_iter();
        names
            .filter_map(|name| folders::read(&self.folders.volumes.join(name).join(VOLUME)))
            .filter(|volume: &VolumeRecord| self.ownership.covers(&volume.config.labels))
            .map(|volume| Volume {
                engine: EngineKind::Wasm,
                name: volume.name,
                labels: volume.config.labels,
            })
            .collect()
    }

    fn make_volume(&self, name: &str, config: VolumeConfig) -> Result<(), EngineError> {
        folders::fit_name("volume", name)?;
        if !matches!(config.driver.as_str(), "" | "local") {
            return Err(EngineError::Invalid(format!(
                "the volume `{name}` cannot be created: the wasm engine has no driver `{}`",
                config.driver
            )));
        }
        let _changing = self.changing.lock();
        let folder = self.folders.volumes.join(name);
        if let Some(present) = folders::read::<VolumeRecord>(&folder.join(VOLUME)) {
            if present.config == config && self.ownership.covers(&config.labels) {
                return Ok(());
            }
            return Err(folders::name_taken("volume", name));
        }
        let volume = VolumeRecord {
            name: name.to_owned(),
            config,
        };
        let made = if folder.exists() {
            // Its record is damaged; the data is worth more than the record.
            record::write(&folder.join(VOLUME), &volume)
        } else {
            folders::put(&folder, |folder| {
                folders::make(&folder.join(DATA))?;
                record::write(&folder.join(VOLUME), &volume)
            })
        };
        made.map_err(|error| EngineError::failed(format!("create the volume `{name}`"), error))?;
        self.emit(EngineEvent::Other);
        Ok(())
    }

    fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        folders::fit_name("volume", name)?;
        let _changing = self.changing.lock();
        if self.our_volume(name).is_none() {
            return Ok(());
        }
        let uses = |mount: &Mount| matches!(mount, Mount::Volume { source, .. } if source == name);
        let mut containers = self.containers.records().into_iter();
        if containers.any(|container| container.config.mounts.iter().any(uses)) {
            return Err(EngineError::in_use(format!("the volume `{name}`")));
        }
        folders::remove(&self.folders.volumes.join(name))
            .map_err(|error| EngineError::failed(format!("remove the volume `{name}`"), error))?;
        self.emit(EngineEvent::Other);
        Ok(())
    }

    /// Returns the folder of a volume's data.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if there is no such volume of ours.
    pub(super) fn volume_data(&self, name: &str) -> Result<PathBuf, EngineError> {
        if self.our_volume(name).is_some() {
            return Ok(self.folders.volumes.join(name).join(DATA));
        }
        Err(EngineError::not_found(format!("the volume `{name}`")))
    }

    fn our_volume(&self, name: &str) -> Option<VolumeRecord> {
        folders::fit_name("volume", name).ok()?;
        let record = folders::read::<VolumeRecord>(&self.folders.volumes.join(name).join(VOLUME))?;
        let is_ours = record.name == name && self.ownership.covers(&record.config.labels);
        is_ours.then_some(record)
    }
}
