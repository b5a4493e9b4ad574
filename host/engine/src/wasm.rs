//! Services that are WebAssembly components, each in a process of its own.
//!
//! [`Wasm`] is made once by the supervisor and driven through [`Engine`]. Everything that it knows is
//! in its folder, and what can be observed is observed there each time: a container is a folder with
//! its record (kept in memory as long as the file is the same, `container_index.rs`), and the state that
//! its process writes. Processes are started as `wasm-service` of the
//! program `supervisor-wasm` and live on without it: a new [`Wasm`] on the same folder finds them
//! again. It never compiles (a [`compiled_code::Cache`] has that done), and it neither loads nor runs
//! compiled code in this process: whether that loads, the process of the service says (`start.rs`).
//!
//! ```text
//! images/REF.json            which component a reference names
//! components/DIGEST.wasm     the components
//! containers/ID/             container.json (ours), launch.json (ours), state.json (the process's),
//!                            log, log.1, root/, anonymous/, tmpfs/; the process, which is another user, may
//!                            write here: what it wrote is believed no further than it concerns itself
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

use crate::{ConfinedService, Disk, Engine, EngineError, EngineEvent, EngineInfo, Scope};

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

/// How many events a slow listener may be behind; then it is told that something changed.
const EVENTS: usize = 256;

/// What a wasm engine needs to know.
#[derive(Clone)]
pub struct WasmConfig {
    /// Where it keeps everything; made where it is not there. One engine at a time.
    pub folder: PathBuf,
    /// The program that is run as `wasm-service --record FOLDER`: `supervisor-wasm` of the layout.
    pub runner: PathBuf,
    /// Where components are compiled, and kept compiled.
    pub cache: compiled_code::Cache,
    /// Where the supervisor's API listens, for services with the label that lets them reach it.
    pub api: Option<SocketAddr>,
    /// The root of the host's file system as this process sees it: folders of the supervisor below it
    /// are made when a service mounts them.
    pub host_root: PathBuf,
    /// Asked what is free before a component is downloaded.
    pub disk: Disk,
    /// Who the processes of services are.
    pub users: UserRange,
    /// Whether a service is started only behind all walls; asked at each start.
    pub requires_confinement: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl WasmConfig {
    fn requires_confinement(&self) -> bool {
        (self.requires_confinement)()
    }
}

/// The wasm engine. Cheap to clone; the last clone to go leaves the services running.
#[derive(Clone)]
pub struct Wasm {
    shared: Arc<Shared>,
}

struct Shared {
    config: WasmConfig,
    scope: Scope,
    folders: Folders,
    containers: ContainerIndex,
    /// Whether processes can become other users, or why not.
    users: Result<(), String>,
    events: broadcast::Sender<EngineEvent>,
    /// Held by whoever changes records, so that a look and the change that depends on it are one.
    changing: Mutex<()>,
    /// Components that are being pulled, and how often, see [`image_table::Arriving`].
    arriving: Mutex<BTreeMap<EngineImageId, usize>>,
    /// One for each container whose process is watched.
    watches: Mutex<HashMap<ContainerId, AbortOnDropHandle<()>>>,
    /// What watches the folders.
    folder_watch: OnceLock<AbortOnDropHandle<()>>,
}

impl Wasm {
    /// Opens the engine in its folder: finds the services that run, and starts again those that do not
    /// and should (after a reboot, for example).
    ///
    /// # Errors
    /// Where the folder cannot be used.
    pub async fn open(config: WasmConfig, scope: Scope) -> Result<Self, EngineError> {
        let folders = Folders::open(&config.folder)?;
        let (events, _) = broadcast::channel(EVENTS);
        let wasm = Wasm {
            shared: Arc::new(Shared {
                users: config.users.check(),
                config,
                scope,
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

    /// Runs work on files where it holds up nobody.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Shared>) -> Result<T, EngineError> + Send + 'static,
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
        work: impl FnOnce(&Arc<Shared>, &ContainerId) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let id = id.clone();
        self.blocking(move |shared| work(shared, &id)).await
    }
}

impl Shared {
    fn tell(&self, event: EngineEvent) {
        // Nobody listens: nobody needs to know.
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
        // One that was too slow does not know what changed, only that something did.
        Ok(events
            .map(|event| event.unwrap_or(EngineEvent::Other))
            .boxed())
    }
}
