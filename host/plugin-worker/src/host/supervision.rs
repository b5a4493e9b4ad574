//! Keeps a worker running: starts it, watches it, and starts it again.

use std::collections::HashMap;
use std::io::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use confinement::Report;
use parking_lot::Mutex;
use plugin_protocol::{FolderView, PATIENCE};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::demand::Demand;
use super::ending::{End, until_end};
use super::folders::folder_states;
use super::host_calls::Registry;
use super::load_parameters::LoadParameters;
use super::memory::InstanceMemory;
use super::process::{self, Process};
use super::session::{Lease, Session};
use super::{WorkerConfig, WorkerWalls};

/// A worker that runs no longer than this is restarted at once only a few times.
const SHORT: Duration = Duration::from_secs(2);
/// How often such a worker is restarted at once.
const AT_ONCE: u32 = 3;
/// The first wait before another restart, which then doubles, and the longest wait.
const WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// A worker, whichever process runs it now.
pub(super) struct Worker {
    config: WorkerConfig,
    folders: Vec<FolderView>,
    memory: Arc<InstanceMemory>,
    session: watch::Sender<Option<Arc<Session>>>,
    /// For plugins with folders, a process only exists while a caller waits for it or uses it.
    demand: Arc<Demand>,
    pub(super) registry: Arc<Registry>,
    /// The plugins that are loaded again into each new process.
    pub(super) plugins: Mutex<HashMap<u64, Weak<LoadParameters>>>,
    /// The walls around its latest process.
    walls: Mutex<Option<Report>>,
    /// Why there is no process.
    problem: Mutex<Option<String>>,
    keeping: Mutex<Option<JoinHandle<()>>>,
    /// Cancelled when no further process may be started.
    stopping: CancellationToken,
}

impl Worker {
    /// Starts the worker. Must be called in a tokio runtime.
    pub(super) fn start(
        config: WorkerConfig,
        folders: Vec<FolderView>,
        memory: usize,
    ) -> Arc<Worker> {
        let worker = Arc::new(Worker {
            config,
            folders,
            memory: Arc::new(InstanceMemory::new(memory)),
            session: watch::Sender::new(None),
            demand: Arc::default(),
            registry: Arc::default(),
            plugins: Mutex::default(),
            walls: Mutex::default(),
            problem: Mutex::default(),
            keeping: Mutex::default(),
            stopping: CancellationToken::new(),
        });
        let demand = (!worker.folders.is_empty()).then(|| Arc::clone(&worker.demand));
        let keep = keep(Arc::downgrade(&worker), demand, worker.stopping.clone());
        *worker.keeping.lock() = Some(tokio::spawn(keep));
        worker
    }

    /// Ends the process, and waits until nothing is left of it.
    pub(super) async fn stop(&self) {
        self.stopping.cancel();
        let keeping = self.keeping.lock().take();
        if let Some(keeping) = keeping {
            // It reports nothing at its end.
            let _ = keeping.await;
        }
    }

    /// Returns the current process, or waits for the next one.
    pub(super) async fn session(&self) -> std::result::Result<Lease, String> {
        let mut sessions = self.session.subscribe();
        if self.current().is_none() {
            // Without such a folder, no process is started: there is nothing to wait for.
            folder_states(self.folders.clone()).await?;
        }
        // An error is why the folders cannot be used; `None` means that there is no process.
        let waiting = async {
            let _waiter = self.demand.waiter();
            loop {
                let session = sessions.borrow_and_update().clone();
                let Some(session) = session else {
                    sessions.changed().await.map_err(|_| None)?;
                    continue;
                };
                // From here on it does not end for lack of work, unless it was already about to.
                let lease = Lease::new(&session);
                let now = self.current();
                let is_current = now.is_some_and(|now| Arc::ptr_eq(&now, &session));
                if is_current && self.has_folders_of(&session).await.map_err(Some)? {
                    return Ok(lease);
                }
                drop(lease);
                if is_current {
                    sessions.changed().await.map_err(|_| None)?;
                }
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited
            .unwrap_or(Err(None))
            .map_err(|reason: Option<String>| {
                let reason = reason.or_else(|| self.problem());
                reason.unwrap_or_else(|| "the process that runs plugins is not running".to_owned())
            })
    }

    /// Returns whether the folders are those that the process can reach. If they have changed, a process with nothing
    /// else to do makes room for another.
    async fn has_folders_of(&self, session: &Session) -> std::result::Result<bool, String> {
        let is_same = folder_states(self.folders.clone()).await? == session.folders;
        if !is_same && session.open.load(Ordering::SeqCst) == 1 {
            session.retired.notify_one();
            return Ok(false);
        }
        Ok(true)
    }

    /// Waits until this process is no longer the current one: it has ended, and that is about to be noticed.
    pub(super) async fn until_gone(&self, session: &Arc<Session>) {
        let mut sessions = self.session.subscribe();
        let is_another =
            |now: &Option<Arc<Session>>| !now.as_ref().is_some_and(|now| Arc::ptr_eq(now, session));
        // If it exists after all, the next question to it shows that.
        let _ = tokio::time::timeout(PATIENCE, sessions.wait_for(is_another)).await;
    }

    /// Returns the current process.
    pub(super) fn current(&self) -> Option<Arc<Session>> {
        self.session.borrow().clone()
    }

    pub(super) fn set_memory(&self, bytes: usize) {
        if self.memory.set(bytes)
            && let Some(session) = self.current()
        {
            self.give_memory(session);
        }
    }

    fn give_memory(&self, session: Arc<Session>) {
        let memory = Arc::clone(&self.memory);
        tokio::spawn(async move { memory.give(&session).await });
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.problem.lock().clone()
    }

    pub(super) fn walls(&self) -> Option<WorkerWalls> {
        let walls = self.walls.lock().clone()?;
        let folders = self.folders.iter();
        Some(WorkerWalls {
            folders: folders.map(|folder| folder.host.clone()).collect(),
            walls,
        })
    }

    async fn start_process(&self) -> Result<Process> {
        static LATEST: AtomicU64 = AtomicU64::new(0);
        let generation = LATEST.fetch_add(1, Ordering::SeqCst) + 1;
        let memory = self.memory.get();
        let config = WorkerConfig {
            memory,
            ..self.config.clone()
        };
        let process = process::start(&config, &self.folders, generation).await?;
        let missing = process.walls.missing_in_words();
        *self.walls.lock() = Some(process.walls.clone());
        if !missing.is_empty() {
            let required = Arc::clone(&config.requires_confinement);
            let required = tokio::task::spawn_blocking(move || required()).await;
            if required.unwrap_or(true) {
                return Err(Error::other(format!(
                    "the policy requires restrictions that this system lacks: {missing}; set `require_confinement = false` in the policy to run without them"
                )));
            }
        }
        Ok(process)
    }

    /// Loads the plugins into a process that has just started.
    fn load_all(&self, session: &Arc<Session>) {
        let plugins: Vec<_> = self
            .plugins
            .lock()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        for plugin in plugins {
            let session = Arc::clone(session);
            tokio::spawn(async move {
                // A call of the plugin reports why it cannot be loaded.
                let _ = plugin.load(&session).await;
            });
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(keeping) = self.keeping.lock().take() {
            keeping.abort();
        }
    }
}

/// Starts a process whenever there is none, or with `demand` whenever there is none and a caller waits for one, for as
/// long as the worker exists.
async fn keep(worker: Weak<Worker>, demand: Option<Arc<Demand>>, stopping: CancellationToken) {
    let mut short_lived = 0;
    let mut reported = false;
    loop {
        if let Some(demand) = &demand {
            stopping.run_until_cancelled(demand.wait_for_caller()).await;
        }
        if stopping.is_cancelled() {
            return;
        }
        let Some(of) = worker.upgrade() else { return };
        let begun = Instant::now();
        let why = match of.start_process().await {
            Ok(process) => {
                *of.problem.lock() = None;
                if !process.walls.missing.is_empty() && !reported {
                    let missing = process.walls.missing_in_words();
                    tracing::warn!(
                        "the process of plugins runs without restrictions that this system lacks: {missing}"
                    );
                    reported = true;
                }
                let registry = Arc::clone(&of.registry);
                of.session.send_replace(Some(Arc::clone(&process.session)));
                // If it was set while the process started, nobody else has informed the process.
                if of.memory.get() != process.memory {
                    of.give_memory(Arc::clone(&process.session));
                }
                of.load_all(&process.session);
                let current = of.session.clone();
                // Dropping the worker ends this task here.
                drop(of);
                let ends_idle = demand.is_some();
                let end = until_end(process, registry, ends_idle, &current, &stopping).await;
                let Some(of) = worker.upgrade() else { return };
                of.session.send_replace(None);
                match end {
                    End::Stopped => return,
                    End::Idle => {
                        short_lived = 0;
                        continue;
                    }
                    End::Lost(why) => {
                        tracing::error!(
                            "the process that runs plugins ended: {why}; starting it again"
                        );
                        why
                    }
                }
            }
            Err(error) => {
                let problem = format!("the process that runs plugins does not start: {error}");
                tracing::error!("{problem}");
                *of.problem.lock() = Some(problem);
                error.to_string()
            }
        };
        short_lived = if begun.elapsed() < SHORT {
            short_lived + 1
        } else {
            0
        };
        if short_lived >= AT_ONCE {
            if let Some(of) = worker.upgrade() {
                let problem = format!("the process that runs plugins keeps ending: {why}");
                *of.problem.lock() = Some(problem);
            }
            let doubled = 1_u32 << (short_lived - AT_ONCE).min(10);
            let wait = tokio::time::sleep(WAIT.0.saturating_mul(doubled).min(WAIT.1));
            stopping.run_until_cancelled(wait).await;
        }
    }
}
