//! The [`Engine`] trait and what goes in and out of it.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use confinement::Report;
use futures::stream::BoxStream;
use model::{
    Branding, Container, ContainerId, DeviceUuid, EngineImageId, EngineKind, Image, ImageRef,
    Network, NetworkConfig, ServiceConfig, Volume, VolumeConfig,
};

use crate::EngineError;

/// Which objects of an engine are ours (docs/spec/device.md#object-labels). Objects outside it are neither listed nor
/// changed nor removed. Images are not labelled by their users, so engines list all of them; whose they are is in the
/// store.
#[derive(Debug, Clone)]
pub struct Scope {
    /// What the device label of our containers, volumes and networks says.
    pub device: DeviceUuid,
    /// What it said before, where the device has been another one: what it left is still its own.
    pub former: Vec<DeviceUuid>,
    /// The engine is this device's alone: every supervised object counts, with or without our uuid.
    pub exclusive: bool,
    /// Where the labels' namespace comes from.
    pub branding: Branding,
}

impl Scope {
    /// Whether an object with these labels is ours.
    #[must_use]
    pub fn covers(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.contains_key(&self.branding.label("supervised"))
            && (self.exclusive
                || labels
                    .get(&self.branding.label("device-uuid"))
                    .is_some_and(|uuid| self.is_or_was(uuid)))
    }

    fn is_or_was(&self, uuid: &str) -> bool {
        let mut all = std::iter::once(&self.device).chain(&self.former);
        all.any(|device| device.as_str() == uuid)
    }

    /// The labels by which an engine that compares labels one by one finds what is ours; where it cannot tell
    /// it finds more.
    pub(crate) fn labels(&self) -> Vec<String> {
        let mut labels = vec![self.branding.label("supervised")];
        if !self.exclusive && self.former.is_empty() {
            let label = self.branding.label("device-uuid");
            labels.push(format!("{label}={}", self.device));
        }
        labels
    }
}

/// A service behind the engine's own walls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfinedService {
    /// The name of its container.
    pub container: String,
    /// Which walls stand.
    pub walls: Report,
}

/// A place where services run. One suite of tests holds for every implementation.
#[async_trait]
pub trait Engine: Images + Containers + Volumes + Networks {
    /// Which of the two kinds it is.
    fn kind(&self) -> EngineKind;

    /// Asks the engine who it is; the cheapest call that proves it answers.
    async fn info(&self) -> Result<EngineInfo, EngineError>;

    /// The services that run behind walls that this engine puts up, with what came of it. None where the engine is
    /// another program.
    async fn confined_services(&self) -> Result<Vec<ConfinedService>, EngineError> {
        Ok(Vec::new())
    }

    /// What of a service this engine will not do, a sentence each; it is asked before the service is made.
    fn ignored(&self, _service: &ServiceConfig) -> Vec<String> {
        Vec::new()
    }

    /// A stream that yields whenever something of ours may have changed. It ends when the engine
    /// goes away; the caller asks for a new one.
    async fn events(&self) -> Result<BoxStream<'static, EngineEvent>, EngineError>;
}

/// What an engine does with images.
#[async_trait]
pub trait Images: Send + Sync {
    /// All images that are here; see [`Scope`] for whose they are.
    async fn images(&self) -> Result<Vec<Image>, EngineError>;

    /// Makes sure that `image` is there and answers it. `progress` is called with each change.
    /// Dropping the future stops the transfer.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] where the registry has no such image, [`EngineError::WrongKind`]
    /// where the image is not one that this engine runs.
    async fn pull_image(
        &self,
        image: &ImageRef,
        auth: Option<&RegistryAuth>,
        progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<Image, EngineError>;

    /// Removes one reference; the image goes with its last. One that is not there is no error.
    ///
    /// # Errors
    /// [`EngineError::InUse`] where a container needs it.
    async fn remove_image(&self, image: &ImageRef) -> Result<(), EngineError>;
}

/// What an engine does with containers.
#[async_trait]
pub trait Containers: Send + Sync {
    /// Ours, running or not.
    async fn containers(&self) -> Result<Vec<Container>, EngineError>;

    /// Makes a container and joins it to all its networks, and does not start it.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] where the name is taken.
    async fn create_container(
        &self,
        spec: &ContainerSpec<'_>,
    ) -> Result<CreatedContainer, EngineError>;

    /// Starts it; one that runs already is no error.
    async fn start_container(&self, id: &ContainerId) -> Result<(), EngineError>;

    /// Stops it, by force when `grace` is over; one that does not run, or is gone, is no error.
    /// It stays stopped until it is started again, whatever its restart policy.
    async fn stop_container(&self, id: &ContainerId, grace: Duration) -> Result<(), EngineError>;

    /// Removes it with its anonymous volumes, by force where it still runs; one that is gone is no
    /// error.
    async fn remove_container(&self, id: &ContainerId) -> Result<(), EngineError>;

    /// # Errors
    /// [`EngineError::Conflict`] where the name is taken.
    async fn rename_container(&self, id: &ContainerId, name: &str) -> Result<(), EngineError>;

    /// The environment that the container was made with (`GET /v1/apps/:appId`).
    async fn environment(&self, id: &ContainerId) -> Result<BTreeMap<String, String>, EngineError>;

    /// What the container prints, until it is removed or the stream is dropped. It goes on over
    /// restarts of the container.
    async fn logs(
        &self,
        id: &ContainerId,
        from: LogsFrom,
    ) -> Result<BoxStream<'static, Result<LogLine, EngineError>>, EngineError>;
}

/// What an engine does with volumes.
#[async_trait]
pub trait Volumes: Send + Sync {
    /// Ours.
    async fn volumes(&self) -> Result<Vec<Volume>, EngineError>;

    /// Makes the volume; an equal one of ours is no error.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] where the name belongs to somebody else.
    async fn create_volume(&self, spec: &VolumeSpec<'_>) -> Result<(), EngineError>;

    /// Removes it with its data; one that is gone is no error.
    ///
    /// # Errors
    /// [`EngineError::InUse`] where a container needs it.
    async fn remove_volume(&self, name: &str) -> Result<(), EngineError>;
}

/// What an engine does with networks.
#[async_trait]
pub trait Networks: Send + Sync {
    /// Ours.
    async fn networks(&self) -> Result<Vec<Network>, EngineError>;

    /// Makes the network; an equal one of ours is no error.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] where the name belongs to somebody else.
    async fn create_network(&self, spec: &NetworkSpec<'_>) -> Result<(), EngineError>;

    /// Removes every network of ours by that name; none is no error.
    async fn remove_network(&self, name: &str) -> Result<(), EngineError>;
}

/// Who an engine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// The engine's own version, for example `20.10.24`.
    pub version: String,
    /// The version of the protocol spoken with it, for example `1.41`; empty where there is none.
    pub api_version: String,
}

/// What a container is made from.
#[derive(Debug, Clone)]
pub struct ContainerSpec<'a> {
    /// The container's name, without a leading slash.
    pub name: &'a str,
    /// All else that it is made from, as the target resolves to.
    pub config: &'a ServiceConfig,
    /// Added to `config.environment`.
    pub init_environment: &'a BTreeMap<String, String>,
    /// The image as it was observed; `config.image` may have moved on since.
    pub image_id: &'a EngineImageId,
    /// The container whose network stack is shared, where `config.network_mode` names a service.
    pub network_container: Option<&'a ContainerId>,
}

/// A container that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedContainer {
    /// The engine's id of it.
    pub id: ContainerId,
    /// Fields that this engine or its version has no meaning for, one sentence each.
    pub warnings: Vec<String>,
}

/// What a volume is made from.
#[derive(Debug, Clone)]
pub struct VolumeSpec<'a> {
    /// The name by which the engine knows it, `<appId>_<name>`.
    pub name: &'a str,
    /// Driver, options and labels.
    pub config: &'a VolumeConfig,
}

/// What a network is made from.
#[derive(Debug, Clone)]
pub struct NetworkSpec<'a> {
    /// The name by which the engine knows it, `<appUuid>_<name>`.
    pub name: &'a str,
    /// Driver, options, address pools and labels.
    pub config: &'a NetworkConfig,
}

/// How far a pull is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullProgress {
    /// 0 to 100, never falling within one pull.
    pub percent: u8,
}

/// Who we are to a registry. `Debug` hides the password.
#[derive(Clone)]
pub struct RegistryAuth {
    /// The account at the registry, for basic authentication.
    pub user: String,
    /// The password or token that goes with `user`.
    pub password: String,
    /// The address of the cloud that the password is for, as a URL: beside the registry's own its host gives tokens.
    pub cloud: Option<String>,
}

impl std::fmt::Debug for RegistryAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RegistryAuth({}, …)", self.user)
    }
}

/// One line that a container printed, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its text; bytes that are no UTF-8 are replaced.
    pub message: String,
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Printed to standard error, not to standard output.
    pub stderr: bool,
}

/// Where a log stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogsFrom {
    /// Only lines from now on.
    Now,
    /// The first line that is kept.
    Start,
    /// The first line that is kept and is not older than this, in milliseconds since the epoch.
    Since(i64),
}

/// Something of ours may have changed; what, is found by observing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    /// This container was made, changed or removed.
    Container(ContainerId),
    /// Anything else; also where events were lost.
    Other,
}
