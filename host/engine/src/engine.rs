//! The [`Engine`] trait and the types of its arguments and results.

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

/// Defines which objects of an engine are ours (docs/spec/device.md#object-labels). Objects outside it are neither
/// listed nor changed nor removed. Images carry no labels of their users, so engines list all of them; the store
/// records whose they are.
#[derive(Debug, Clone)]
pub struct Ownership {
    /// The value of the device label of our containers, volumes and networks.
    pub device: DeviceUuid,
    /// Earlier values, if the device had another uuid: the objects from that time are still ours.
    pub former: Vec<DeviceUuid>,
    /// The engine belongs to this device only: every supervised object counts, with or without our uuid.
    pub exclusive: bool,
    /// The source of the labels' namespace.
    pub branding: Branding,
}

impl Ownership {
    /// Returns whether an object with these labels is ours.
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

    /// Returns the labels by which an engine that compares labels one by one finds our objects; if they are not
    /// specific enough, it finds more.
    pub(crate) fn labels(&self) -> Vec<String> {
        let mut labels = vec![self.branding.label("supervised")];
        if !self.exclusive && self.former.is_empty() {
            let label = self.branding.label("device-uuid");
            labels.push(format!("{label}={}", self.device));
        }
        labels
    }
}

/// A service that the engine itself confines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfinedService {
    /// The name of its container.
    pub container: String,
    /// Which walls are in place.
    pub walls: Report,
}

/// A place where services run. The same test suite applies to every implementation.
#[async_trait]
pub trait Engine: Images + Containers + Volumes + Networks {
    /// Returns which of the two kinds it is.
    fn kind(&self) -> EngineKind;

    /// Requests the engine's versions; the cheapest call that proves that it answers.
    async fn info(&self) -> Result<EngineInfo, EngineError>;

    /// Returns the services that this engine confines itself, with the result. Empty if the engine is another program.
    async fn confined_services(&self) -> Result<Vec<ConfinedService>, EngineError> {
        Ok(Vec::new())
    }

    /// Returns what this engine will ignore of a service, a sentence each; called before the service is created.
    fn ignored(&self, _service: &ServiceConfig) -> Vec<String> {
        Vec::new()
    }

    /// Returns a stream that yields whenever one of our objects may have changed. It ends when the engine goes away;
    /// the caller then requests a new one.
    async fn events(&self) -> Result<BoxStream<'static, EngineEvent>, EngineError>;
}

/// Operations on images.
#[async_trait]
pub trait Images: Send + Sync {
    /// Returns all images of the engine; see [`Ownership`] for whose they are.
    async fn images(&self) -> Result<Vec<Image>, EngineError>;

    /// Pulls `image` unless the engine has it, and returns it. `progress` is called with each change. Dropping the
    /// future stops the transfer.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the registry has no such image, [`EngineError::WrongKind`] if this engine cannot
    /// run the image.
    async fn pull_image(
        &self,
        image: &ImageRef,
        auth: Option<&RegistryAuth>,
        progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<Image, EngineError>;

    /// Removes one reference; the image is removed with its last one. A missing reference is not an error.
    ///
    /// # Errors
    /// [`EngineError::InUse`] if a container needs it.
    async fn remove_image(&self, image: &ImageRef) -> Result<(), EngineError>;
}

/// Operations on containers.
#[async_trait]
pub trait Containers: Send + Sync {
    /// Returns our containers, running or not.
    async fn containers(&self) -> Result<Vec<Container>, EngineError>;

    /// Creates a container and joins it to all its networks, but does not start it.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] if the name is taken.
    async fn create_container(
        &self,
        spec: &ContainerSpec<'_>,
    ) -> Result<CreatedContainer, EngineError>;

    /// Starts a container; if it runs already, that is not an error.
    async fn start_container(&self, id: &ContainerId) -> Result<(), EngineError>;

    /// Stops a container, by force when `grace` is over; it is not an error if it does not run or does not exist. It
    /// stays stopped until it is started again, whatever its restart policy.
    async fn stop_container(&self, id: &ContainerId, grace: Duration) -> Result<(), EngineError>;

    /// Removes a container with its anonymous volumes, by force if it still runs; a missing one is not an error.
    async fn remove_container(&self, id: &ContainerId) -> Result<(), EngineError>;

    /// # Errors
    /// [`EngineError::Conflict`] if the name is taken.
    async fn rename_container(&self, id: &ContainerId, name: &str) -> Result<(), EngineError>;

    /// Returns the environment that the container was created with (`GET /v1/apps/:appId`).
    async fn environment(&self, id: &ContainerId) -> Result<BTreeMap<String, String>, EngineError>;

    /// Returns what the container prints, until it is removed or the stream is dropped. The stream continues across
    /// restarts of the container.
    async fn logs(
        &self,
        id: &ContainerId,
        from: LogsFrom,
    ) -> Result<BoxStream<'static, Result<LogLine, EngineError>>, EngineError>;
}

/// Operations on volumes.
#[async_trait]
pub trait Volumes: Send + Sync {
    /// Returns our volumes.
    async fn volumes(&self) -> Result<Vec<Volume>, EngineError>;

    /// Creates the volume; an equal one of ours is not an error.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] if the name belongs to another owner.
    async fn create_volume(&self, spec: &VolumeSpec<'_>) -> Result<(), EngineError>;

    /// Removes the volume with its data; a missing one is not an error.
    ///
    /// # Errors
    /// [`EngineError::InUse`] if a container needs it.
    async fn remove_volume(&self, name: &str) -> Result<(), EngineError>;
}

/// Operations on networks.
#[async_trait]
pub trait Networks: Send + Sync {
    /// Returns our networks.
    async fn networks(&self) -> Result<Vec<Network>, EngineError>;

    /// Creates the network; an equal one of ours is not an error.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] if the name belongs to another owner.
    async fn create_network(&self, spec: &NetworkSpec<'_>) -> Result<(), EngineError>;

    /// Removes every network of ours with that name; it is not an error if there is none.
    async fn remove_network(&self, name: &str) -> Result<(), EngineError>;
}

/// The versions of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// The engine's own version, for example `20.10.24`.
    pub version: String,
    /// The version of the protocol that is spoken with it, for example `1.41`; empty if there is none.
    pub api_version: String,
}

/// What a container is created from.
#[derive(Debug, Clone)]
pub struct ContainerSpec<'a> {
    /// The container's name, without a leading slash.
    pub name: &'a str,
    /// All other settings, as resolved from the target.
    pub config: &'a ServiceConfig,
    /// Added to `config.environment`.
    pub init_environment: &'a BTreeMap<String, String>,
    /// The image as it was observed; `config.image` may refer to another one by now.
    pub image_id: &'a EngineImageId,
    /// The container whose network stack is shared, if `config.network_mode` names a service.
    pub network_container: Option<&'a ContainerId>,
}

/// A container that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedContainer {
    /// The engine's id for it.
    pub id: ContainerId,
    /// Fields that this engine or its version does not support, one sentence each.
    pub warnings: Vec<String>,
}

/// What a volume is created from.
#[derive(Debug, Clone)]
pub struct VolumeSpec<'a> {
    /// The name by which the engine knows it, `<appId>_<name>`.
    pub name: &'a str,
    /// Driver, options and labels.
    pub config: &'a VolumeConfig,
}

/// What a network is created from.
#[derive(Debug, Clone)]
pub struct NetworkSpec<'a> {
    /// The name by which the engine knows it, `<appUuid>_<name>`.
    pub name: &'a str,
    /// Driver, options, address pools and labels.
    pub config: &'a NetworkConfig,
}

/// The progress of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullProgress {
    /// 0 to 100, never decreasing within one pull.
    pub percent: u8,
}

/// Our credentials for a registry. `Debug` hides the password.
#[derive(Clone)]
pub struct RegistryAuth {
    /// The account at the registry, for basic authentication.
    pub user: String,
    /// The password or token that goes with `user`.
    pub password: String,
    /// The address of the cloud that the password is for, as a URL: its host may issue tokens, as the registry's own
    /// may.
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
    /// Its text; bytes that are not UTF-8 are replaced.
    pub message: String,
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Printed to standard error, not to standard output.
    pub stderr: bool,
}

/// The start of a log stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogsFrom {
    /// The first line that is still stored.
    Start,
    /// The first stored line that is not older than this, in milliseconds since the epoch.
    Since(i64),
}

/// One of our objects may have changed; observe them to find out how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEvent {
    /// This container was created, changed or removed.
    Container(ContainerId),
    /// Anything else, including lost events.
    Other,
}
