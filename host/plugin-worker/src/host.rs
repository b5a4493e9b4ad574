//! The host's end: a runtime whose guests run in another process.

mod call;
mod demand;
mod ending;
mod entry;
mod folders;
mod groups;
mod host_calls;
mod load_parameters;
mod memory;
mod plugin;
mod process;
mod pulse;
mod session;
mod supervision;

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use confinement::Report;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use plugin_protocol::{FolderView, GuestCode, GuestRuntime};

use plugin::RemoteCode;
use supervision::Worker;

/// The settings for starting workers.
#[derive(Clone)]
pub struct WorkerConfig {
    /// The program `supervisor-wasm`.
    pub program: PathBuf,
    /// How many instances can exist at a time in one worker.
    pub slots: usize,
    /// The memory of all instances of one worker together, in bytes.
    pub memory: usize,
    /// The path below which control groups of workers are created: within those that the system lets the supervisor
    /// manage.
    pub control_groups: PathBuf,
    /// Whether no worker may run plugins if a wall around it is missing; called each time a worker is started. May
    /// block.
    pub requires_confinement: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// A worker's process, and the walls around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerWalls {
    /// The folders that it can reach.
    pub folders: Vec<PathBuf>,
    /// The walls, as the process found them.
    pub walls: Report,
}

/// A runtime in processes without rights: one for all plugins without folders, and one for each set of folders, which
/// can reach only these.
pub struct WorkerRuntime {
    shared: Arc<WorkerSet>,
}

struct WorkerSet {
    config: WorkerConfig,
    main: Arc<Worker>,
    of_folders: Mutex<HashMap<Vec<FolderView>, Weak<Worker>>>,
    memory: AtomicUsize,
}

impl WorkerRuntime {
    /// Starts a worker. Must be called in a tokio runtime.
    #[must_use]
    pub fn start(config: WorkerConfig) -> WorkerRuntime {
        let memory = config.memory;
        let control_groups = config.control_groups.clone();
        // It may block, and nothing waits for it.
        tokio::task::spawn_blocking(move || groups::sweep(&control_groups));
        WorkerRuntime {
            shared: Arc::new(WorkerSet {
                main: Worker::start(config.clone(), Vec::new(), memory),
                config,
                of_folders: Mutex::default(),
                memory: AtomicUsize::new(memory),
            }),
        }
    }
}

impl WorkerRuntime {
    /// Returns the walls around each process that exists, or was the last of its worker.
    #[must_use]
    pub fn walls(&self) -> Vec<WorkerWalls> {
        let workers = self.shared.workers();
        workers.iter().filter_map(|worker| worker.walls()).collect()
    }

    /// Ends all processes, and returns once nothing is left of them.
    pub async fn stop(&self) {
        for worker in self.shared.workers() {
            worker.stop().await;
        }
    }
}

impl WorkerSet {
    /// Returns the worker of plugins that see these folders.
    fn worker(&self, folders: &[FolderView]) -> Arc<Worker> {
        if folders.is_empty() {
            return Arc::clone(&self.main);
        }
        let mut workers = self.of_folders.lock();
        workers.retain(|_, worker| worker.strong_count() > 0);
        if let Some(worker) = workers.get(folders).and_then(Weak::upgrade) {
            return worker;
        }
        let memory = self.memory.load(Relaxed);
        let worker = Worker::start(self.config.clone(), folders.to_vec(), memory);
        workers.insert(folders.to_vec(), Arc::downgrade(&worker));
        worker
    }

    fn workers(&self) -> Vec<Arc<Worker>> {
        let others = self.of_folders.lock();
        let others = others.values().filter_map(Weak::upgrade);
        std::iter::once(Arc::clone(&self.main))
            .chain(others)
            .collect()
    }
}

impl GuestRuntime for WorkerRuntime {
    fn open(&self, file: File) -> BoxFuture<'static, Result<Arc<dyn GuestCode>, String>> {
        let shared = Arc::clone(&self.shared);
        async move {
            let code = RemoteCode::open(shared, file).await?;
            Ok(Arc::new(code) as Arc<dyn GuestCode>)
        }
        .boxed()
    }

    fn slots(&self) -> usize {
        self.shared.config.slots
    }

    fn set_memory(&self, bytes: usize) {
        self.shared.memory.store(bytes, Relaxed);
        for worker in self.shared.workers() {
            worker.set_memory(bytes);
        }
    }

    fn problems(&self) -> Vec<String> {
        let workers = self.shared.workers();
        workers
            .iter()
            .filter_map(|worker| worker.problem())
            .collect()
    }
}
