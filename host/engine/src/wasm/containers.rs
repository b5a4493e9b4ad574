//! Containers as records: listing, creating, renaming, removing. Their processes are in
//! [`super::processes`].

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use model::{
    Container, ContainerId, ContainerState, EngineImageId, EngineKind, ImageRef, Mount, NetworkMode,
};
use wasm_service::log_file::now_ms;
use wasm_service::record::{self, STATE, State, Status};

use super::component_file::file_path;
use super::record::{CONTAINER, ContainerRecord};
use super::{Wasm, WasmState, addresses, cgroups, folders, logs, unsupported};
use crate::{
    ContainerSpec, Containers, CreatedContainer, EngineError, EngineEvent, LogLine, LogsFrom,
};

/// The exit code of a service whose process was killed, or is gone for another reason.
pub(super) const KILLED: i64 = 137;

#[async_trait]
impl Containers for Wasm {
    async fn containers(&self) -> Result<Vec<Container>, EngineError> {
        self.blocking(|shared| Ok(shared.list_containers())).await
    }

    async fn create_container(
        &self,
        spec: &ContainerSpec<'_>,
    ) -> Result<CreatedContainer, EngineError> {
        let id = random_id()?;
        let record = ContainerRecord {
            id: id.clone(),
            name: spec.name.to_owned(),
            image_id: spec.image_id.clone(),
            config: spec.config.clone(),
            nano_cpus: spec.config.nano_cpus,
            init_environment: spec.init_environment.clone(),
            address: Ipv4Addr::UNSPECIFIED,
            shares: spec.network_container.cloned(),
            user: None,
            created_at_ms: now_ms(),
            stopped: false,
        };
        let warnings = unsupported::warnings(spec.config);
        self.blocking(move |shared| shared.put_container(record))
            .await?;
        self.shared.emit(EngineEvent::Container(id.clone()));
        Ok(CreatedContainer { id, warnings })
    }

    async fn start_container(&self, id: &ContainerId) -> Result<(), EngineError> {
        self.start(id).await
    }

    async fn stop_container(&self, id: &ContainerId, grace: Duration) -> Result<(), EngineError> {
        self.stop(id, grace).await
    }

    async fn remove_container(&self, id: &ContainerId) -> Result<(), EngineError> {
        let is_ours = self.blocking_for(id, |shared, id| Ok(shared.our_container(id).is_ok()));
        if !is_ours.await? {
            return Ok(());
        }
        self.stop_container(id, Duration::ZERO).await?;
        self.blocking_for(id, |shared, id| shared.remove_container(id))
            .await?;
        self.shared.emit(EngineEvent::Container(id.clone()));
        Ok(())
    }

    async fn rename_container(&self, id: &ContainerId, name: &str) -> Result<(), EngineError> {
        let name = name.to_owned();
        self.blocking_for(id, move |shared, id| shared.rename(id, &name))
            .await
    }

    async fn environment(&self, id: &ContainerId) -> Result<BTreeMap<String, String>, EngineError> {
        self.blocking_for(id, |shared, id| Ok(shared.our_container(id)?.environment()))
            .await
    }

    async fn logs(
        &self,
        id: &ContainerId,
        from: LogsFrom,
    ) -> Result<BoxStream<'static, Result<LogLine, EngineError>>, EngineError> {
        let folder = self.blocking_for(id, |shared, id| {
            shared.our_container(id)?;
            Ok(shared.folders.container(id))
        });
        logs::follow(folder.await?, from)
    }
}

impl WasmState {
    pub(super) fn list_containers(&self) -> Vec<Container> {
        self.our_current_containers()
            .map(|record| container(&record, &self.state(&record.id)))
            .collect()
    }

    /// Returns our containers, as their files are now.
    pub(super) fn our_current_containers(&self) -> impl Iterator<Item = Arc<ContainerRecord>> {
        let records = self.containers.current_records().into_iter();
        records.filter(|record| self.ownership.covers(&record.config.labels))
    }

    /// Returns the state of a container; if it has none, or a damaged one, it counts as just
    /// created.
    pub(super) fn state(&self, id: &ContainerId) -> State {
        let state = folders::read(&self.folders.container(id).join(STATE));
        state.unwrap_or_else(State::created)
    }

    /// # Errors
    /// [`EngineError::NotFound`] if there is none, or it is not ours.
    pub(super) fn our_container(&self, id: &ContainerId) -> Result<ContainerRecord, EngineError> {
        // An id becomes a path; ours are hexadecimal.
        let is_id = id.as_str().bytes().all(|byte| byte.is_ascii_hexdigit());
        let record = is_id.then(|| self.containers.record(id)).flatten();
        record
            .filter(|record| self.ownership.covers(&record.config.labels))
            .map(Arc::unwrap_or_clone)
            .ok_or_else(|| EngineError::not_found(format!("the container `{id}`")))
    }

    pub(super) fn write_container(&self, record: &ContainerRecord) -> Result<(), EngineError> {
        let path = self.folders.container(&record.id).join(CONTAINER);
        let written = record::write(&path, record);
        self.containers.reread(&record.id);
        written.map_err(|error| {
            EngineError::failed(format!("record the container `{}`", record.name), error)
        })
    }

    pub(super) fn write_state(&self, id: &ContainerId, state: &State) {
        let path = self.folders.container(id).join(STATE);
        if let Err(error) = record::write(&path, state) {
            tracing::warn!(%error, path = %path.display(), "failed to write `{}`", path.display());
        }
    }

    fn put_container(self: &Arc<Self>, mut record: ContainerRecord) -> Result<(), EngineError> {
        let _changing = self.changing.lock();
        let others = self.containers.records();
        check_name(&record.name, &record.id, &others)?;
        self.check_references(&record)?;
        self.keep_component(&record.config.image, &record.image_id)?;
        record.address = match (&record.config.network_mode, &record.shares) {
            (NetworkMode::Service(service), None) => {
                return Err(EngineError::Invalid(format!(
                    "the service `{service}`, whose network it shares, has no container"
                )));
            }
            (NetworkMode::Service(_), Some(other)) => self.our_container(other)?.address,
            _ => {
                let in_use: Vec<Ipv4Addr> = others.iter().map(|other| other.address).collect();
                addresses::allocate(&self.ownership.device, &record.id, &in_use)
            }
        };
        let folder = self.folders.container(&record.id);
        let made = self.containers.come_or_go(&record.id, || {
            folders::put(&folder, |folder| {
                record::write(&folder.join(CONTAINER), &record)?;
                record::write(&folder.join(STATE), &State::created())
            })
        });
        made.map_err(|error| {
            EngineError::failed(format!("create the container `{}`", record.name), error)
        })?;
        self.write_members_beside(&record);
        Ok(())
    }

    /// Checks that everything the container refers to exists.
    fn check_references(&self, record: &ContainerRecord) -> Result<(), EngineError> {
        for name in record.networks(&self.ownership) {
            if self.network_record(&name).is_none() {
                return Err(EngineError::not_found(format!("the network `{name}`")));
            }
        }
        for mount in &record.config.mounts {
            if let Mount::Volume { source, .. } = mount {
                self.volume_data(source)?;
            }
        }
        Ok(())
    }

    /// Stores the component. A file that changed since it was pulled is another image, which has
    /// not been stored yet.
    fn keep_component(
        self: &Arc<Self>,
        image: &ImageRef,
        id: &EngineImageId,
    ) -> Result<(), EngineError> {
        if self.has_component(id) {
            return Ok(());
        }
        if image.is_file() {
            let (record, _) = self.take_file(image, &file_path(image)?)?;
            if record.id == *id {
                return Ok(());
            }
        }
        Err(EngineError::not_found(format!("the image `{id}`")))
    }

    pub(super) fn rename(&self, id: &ContainerId, name: &str) -> Result<(), EngineError> {
        let _changing = self.changing.lock();
        let mut record = self.our_container(id)?;
        check_name(name, id, &self.containers.records())?;
        record.name = name.to_owned();
        self.write_container(&record)?;
        self.write_members_beside(&record);
        self.emit(EngineEvent::Container(id.clone()));
        Ok(())
    }

    fn remove_container(&self, id: &ContainerId) -> Result<(), EngineError> {
        let _changing = self.changing.lock();
        let Some(record) = self.containers.record(id) else {
            return Ok(());
        };
        let folder = self.folders.container(id);
        let removed = self.containers.come_or_go(id, || folders::remove(&folder));
        removed.map_err(|error| {
            EngineError::failed(format!("remove the container `{}`", record.name), error)
        })?;
        cgroups::remove(&record, &self.ownership);
        self.write_members_beside(&record);
        self.sweep_component_of(&record);
        Ok(())
    }
}

fn check_name(
    name: &str,
    id: &ContainerId,
    others: &[Arc<ContainerRecord>],
) -> Result<(), EngineError> {
    folders::fit_name("container", name)?;
    if others
        .iter()
        .any(|other| other.name == name && other.id != *id)
    {
        return Err(folders::name_taken("container", name));
    }
    Ok(())
}

fn container(record: &ContainerRecord, state: &State) -> Container {
    let is_served = state.is_served();
    // The process ended without writing a state: its watch is about to note that.
    let was_lost = !is_served && matches!(state.status, Status::Running | Status::Restarting);
    Container {
        engine: EngineKind::Wasm,
        id: record.id.clone(),
        name: record.name.clone(),
        labels: record.config.labels.clone(),
        image: record.config.image.to_string(),
        image_id: record.image_id.clone(),
        state: match state.status {
            Status::Created => ContainerState::Created,
            Status::Running if is_served => ContainerState::Running,
            Status::Restarting => ContainerState::Restarting,
            Status::Running | Status::Exited => ContainerState::Exited,
        },
        exit_code: match state.status {
            Status::Running if was_lost => Some(KILLED),
            Status::Created | Status::Running => None,
            Status::Restarting | Status::Exited => state.exit_code,
        },
        health: state
            .health
            .filter(|_| is_served && state.status == Status::Running),
        created_at_ms: record.created_at_ms,
    }
}

/// Returns 64 hexadecimal digits, like Docker's.
fn random_id() -> Result<ContainerId, EngineError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        EngineError::failed("name a container", error)
    };
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| failed(error.into()))?;
    hex::encode(bytes)
        .parse()
        .map_err(|error: model::IdError| failed(error.into()))
}
