//! Code and plugins in a worker, as seen by the host.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::{
    ActionAnswer, ActionCall, Blueprint, ComponentFacts, Failure, GuestCode, GuestPlugin,
    GuestRequest, HostCalls, Outcome, ServedCall,
};
use tokio::sync::Mutex;

use super::entry::PluginEntry;
use super::session::{Lease, Session};
use super::supervision::Worker;
use super::{WorkerSet, call};
use crate::wire::{Note, Question, Reply};

/// Returns a new number for code or a plugin; none is used twice.
fn next() -> u64 {
    static LATEST: AtomicU64 = AtomicU64::new(0);
    LATEST.fetch_add(1, SeqCst) + 1
}

/// A compiled file.
struct CodeFile {
    id: u64,
    /// Open for as long as a worker may need to open it.
    file: File,
    shared: Arc<WorkerSet>,
}

impl Drop for CodeFile {
    fn drop(&mut self) {
        for worker in self.shared.workers() {
            if let Some(session) = worker.current() {
                session.note(Note::Forget { code: self.id });
            }
        }
    }
}

/// A component in a worker.
pub(super) struct RemoteCode {
    code: Arc<CodeFile>,
    facts: ComponentFacts,
}

impl RemoteCode {
    /// Opens it in the worker of plugins without folders.
    pub(super) async fn open(shared: Arc<WorkerSet>, file: File) -> Result<RemoteCode, String> {
        let session = shared.main.session().await?;
        let code = CodeFile {
            id: next(),
            file,
            shared,
        };
        let question = Question::Open { code: code.id };
        let reply = session.0.ask(&question, Some(code.file.as_fd())).await;
        match reply.map_err(|error| error.to_string())? {
            Some(Reply::Opened(facts)) => Ok(RemoteCode {
                code: Arc::new(code),
                facts,
            }),
            Some(Reply::Refused(reason)) => Err(reason),
            Some(_) => Err("the process that runs plugins sent an unexpected answer".to_owned()),
            None => {
                Err("the process that runs plugins ended while it loaded the plugin".to_owned())
            }
        }
    }
}

impl GuestCode for RemoteCode {
    fn facts(&self) -> &ComponentFacts {
        &self.facts
    }

    fn plugin(&self, blueprint: Blueprint, host: Arc<dyn HostCalls>) -> Arc<dyn GuestPlugin> {
        let worker = self.code.shared.worker(&blueprint.folders);
        let entry = PluginEntry::new(host);
        let loadable = Arc::new(LoadParameters {
            id: next(),
            code: Arc::clone(&self.code),
            blueprint,
            loaded: AtomicU64::new(0),
            loading: Mutex::default(),
        });
        worker
            .registry
            .lock()
            .insert(loadable.id, Arc::downgrade(&entry));
        worker
            .plugins
            .lock()
            .insert(loadable.id, Arc::downgrade(&loadable));
        if let Some(session) = worker.current() {
            let loadable = Arc::clone(&loadable);
            tokio::spawn(async move {
                // A call of the plugin reports why it cannot be loaded.
                let _ = loadable.load(&session).await;
            });
        }
        Arc::new(RemotePlugin {
            loadable,
            entry,
            worker,
        })
    }
}

/// Everything needed to load a plugin in a worker.
pub(super) struct LoadParameters {
    pub(super) id: u64,
    code: Arc<CodeFile>,
    pub(super) blueprint: Blueprint,
    /// The generation of the process that has loaded it; 0 for none.
    loaded: AtomicU64,
    /// Held while it is being loaded.
    loading: Mutex<()>,
}

impl LoadParameters {
    /// Loads it into the process if necessary.
    pub(super) async fn load(&self, session: &Arc<Session>) -> Result<(), Failure> {
        if self.loaded.load(SeqCst) == session.generation {
            return Ok(());
        }
        let _loading = self.loading.lock().await;
        if self.loaded.load(SeqCst) == session.generation {
            return Ok(());
        }
        let question = Question::Load {
            plugin: self.id,
            code: self.code.id,
            blueprint: self.blueprint.clone(),
        };
        let reply = session.ask(&question, Some(self.code.file.as_fd())).await;
        match reply {
            Ok(Some(Reply::Done)) => {
                self.loaded.store(session.generation, SeqCst);
                Ok(())
            }
            Ok(Some(Reply::Refused(reason))) => Err(Failure::NotReady(reason)),
            _ => Err(Failure::Lost),
        }
    }
}

/// A plugin in a worker.
pub(super) struct RemotePlugin {
    loadable: Arc<LoadParameters>,
    pub(super) entry: Arc<PluginEntry>,
    worker: Arc<Worker>,
}

impl RemotePlugin {
    pub(super) fn id(&self) -> u64 {
        self.loadable.id
    }

    /// The most bytes of a body.
    pub(super) fn most_of_body(&self) -> usize {
        self.loadable.blueprint.limits.body
    }

    /// Returns a process that has loaded it, other than the one that has `ended`.
    pub(super) async fn session(&self, ended: Option<&Arc<Session>>) -> Result<Lease, Failure> {
        if let Some(ended) = ended {
            self.worker.until_gone(ended).await;
        }
        let session = self.worker.session().await.map_err(Failure::NotReady)?;
        match self.loadable.load(&session.0).await {
            Ok(()) => Ok(session),
            // The process ended before it had loaded the plugin, for whatever reason: the next one
            // is tried, once.
            Err(Failure::Lost) => {
                self.worker.until_gone(&session.0).await;
                let session = self.worker.session().await.map_err(Failure::NotReady)?;
                self.loadable.load(&session.0).await?;
                Ok(session)
            }
            Err(failure) => Err(failure),
        }
    }
}

impl GuestPlugin for RemotePlugin {
    fn call(
        &self,
        serving: ServedCall,
        request: GuestRequest,
    ) -> BoxFuture<'_, Result<Outcome, Failure>> {
        call::call(self, serving, request).boxed()
    }

    fn act(
        &self,
        serving: ServedCall,
        call: ActionCall,
    ) -> BoxFuture<'_, Result<ActionAnswer, Failure>> {
        call::act(self, serving, call).boxed()
    }
}

impl Drop for RemotePlugin {
    fn drop(&mut self) {
        let plugin = self.id();
        self.worker.registry.lock().remove(&plugin);
        self.worker.plugins.lock().remove(&plugin);
        if let Some(session) = self.worker.current() {
            session.note(Note::Unload { plugin });
        }
    }
}
