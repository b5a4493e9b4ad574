//! Services that are WebAssembly components, each in its own process.
//!
//! The supervisor creates one [`Wasm`] and uses it through [`Engine`]. All its state is in its folder, and observations
//! read it from there each time: a container is a folder with its record (kept in memory until the file changes,
//! `container_index.rs`), and the state that its process writes. Processes are started as `wasm-service` of the program
//! `supervisor-wasm` and outlive the engine: a new [`Wasm`] on the same folder finds them again. The engine never
//! compiles (a [`compiled_code::Cache`] does that), and it neither loads nor runs compiled code in this process: the
//! process of the service reports whether it loads (`start.rs`).
//!
//! ```text
//! images/REF.json            which component a reference names
//! components/DIGEST.wasm     the components
//! containers/ID/             container.json (ours), launch.json (ours), state.json (the process's),
//!                            log, log.1, root/, anonymous/, tmpfs/; the process, which runs as another user, may
//!                            write here: the engine trusts its files only as far as they concern the process itself
//! networks/NAME/             network.json, members.json (derived from the containers)
//! volumes/NAME/              volume.json, data/
//! ```

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use model::{ContainerId, EngineImageId, EngineKind, ServiceConfig};
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_util::task::AbortOnDropHandle;

use crate::{ConfinedService, Disk, Engine, EngineError, EngineEvent, EngineInfo, Ownership};

mod addresses;
mod cgroups;
mod changes;
mod component_file;
mod container_index;
mod containers;
mod folders;
mod health_check;
mod image_table;
mod inotify;
mod launch;
mod logs;
mod networks;
mod processes;
mod pull;
mod readable;
mod record;
mod start;
mod strays;
mod unsupported;
mod users;
mod volumes;
mod walls;

use container_index::ContainerIndex;
use folders::Folders;
pub use users::UserRange;

/// How many events a slow listener may be behind; after that it only learns that something changed.
const EVENTS: usize = 256;

/// The configuration of a wasm engine.
#[derive(Clone)]
pub struct WasmConfig {
    /// The folder for all its state; created if it does not exist. One engine at a time.
    pub folder: PathBuf,
    /// The program that is run as `wasm-service --record FOLDER`: `supervisor-wasm` of the layout.
    pub runner: PathBuf,
    /// Compiles components and stores the compiled code.
    pub cache: compiled_code::Cache,
    /// The address of the supervisor's API, for services with the label that lets them reach it.
    pub api: Option<SocketAddr>,
    /// The root of the host's file system as this process sees it: if a service mounts folders of
    /// the supervisor below it, they are created.
    pub host_root: PathBuf,
    /// Reports the free space before a component is downloaded.
    pub disk: Disk,
    /// The users for the processes of services.
    pub users: UserRange,
    /// Whether a service may start only behind all walls; checked at each start.
    pub requires_confinement: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl WasmConfig {
    fn requires_confinement(&self) -> bool {
        (self.requires_confinement)()
    }
}

/// The wasm engine. Cheap to clone; services keep running when the last clone is dropped.
#[derive(Clone)]
pub struct Wasm {
    shared: Arc<WasmState>,
}

struct WasmState {
    config: WasmConfig,
    ownership: Ownership,
    folders: Folders,
    containers: ContainerIndex,
    /// Whether processes can become other users, or why not.
    users: Result<(), String>,
    events: broadcast::Sender<EngineEvent>,
    /// Held while records are changed, so that a check and the change that depends on it are
    /// atomic.
    changing: Mutex<()>,
    /// Components that are being pulled, with a count, see [`image_table::ArrivingImages`].
    arriving: Mutex<BTreeMap<EngineImageId, usize>>,
    /// One task for each container whose process is watched.
    watches: Mutex<HashMap<ContainerId, AbortOnDropHandle<()>>>,
    /// The task that watches the folders.
    folder_watch: OnceLock<AbortOnDropHandle<()>>,
}

impl Wasm {
    /// Opens the engine in its folder: finds the services that run, and restarts those that do not
    /// run but should (after a reboot, for example).
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub async fn open(config: WasmConfig, ownership: Ownership) -> Result<Self, EngineError> {
        let folders = Folders::open(&config.folder)?;
        let (events, _) = broadcast::channel(EVENTS);
        let wasm = Wasm {
            shared: Arc::new(WasmState {
                users: config.users.check(),
                config,
                ownership,
                containers: ContainerIndex::new(folders.containers.clone()),
                folders,
                events,
                changing: Mutex::default(),
                arriving: Mutex::default(),
                watches: Mutex::default(),
                folder_watch: OnceLock::new(),
            }),
        };
        processes::keep_descriptors_from_children();
        wasm.watch_folders()?;
        wasm.blocking(|shared| {
            shared.write_all_members();
            shared.sweep_components();
            Ok(())
        })
        .await?;
        wasm.find_processes().await?;
        Ok(wasm)
    }

    /// Runs file operations on a thread where they do not block other tasks.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<WasmState>) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let shared = self.shared.clone();
        tokio::task::spawn_blocking(move || work(&shared))
            .await
            .map_err(|error| EngineError::failed("work on the wasm engine's files", error))?
    }

    /// As [`Self::blocking`], for the container `id`.
    async fn blocking_for<T: Send + 'static>(
        &self,
        id: &ContainerId,
        work: impl FnOnce(&Arc<WasmState>, &ContainerId) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let id = id.clone();
        self.blocking(move |shared| work(shared, &id)).await
    }
}

impl WasmState {
    fn emit(&self, event: EngineEvent) {
        // Without listeners, the event can be dropped.
        let _ = self.events.send(event);
    }
}

#[async_trait]
impl Engine for Wasm {
    fn kind(&self) -> EngineKind {
        EngineKind::Wasm
    }

    async fn info(&self) -> Result<EngineInfo, EngineError> {
        Ok(EngineInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api_version: String::new(),
        })
    }

    async fn confined_services(&self) -> Result<Vec<ConfinedService>, EngineError> {
        self.walls().await
    }

    fn ignored(&self, service: &ServiceConfig) -> Vec<String> {
        unsupported::warnings(service)
    }

    async fn events(&self) -> Result<BoxStream<'static, EngineEvent>, EngineError> {
        let events = BroadcastStream::new(self.shared.events.subscribe());
        // A listener that was too slow only learns that something changed, not what.
        Ok(events
            .map(|event| event.unwrap_or(EngineEvent::Other))
            .boxed())
    }
}
