//! Code and plugins in a worker, as seen by the host.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use plugin_protocol::{Blueprint, ComponentFacts, Failure, GuestCode, GuestPlugin, HostCalls};

use super::WorkerSet;
use super::entry::PluginEntry;
use super::load_parameters::{CodeFile, LoadParameters};
use super::session::{Lease, Session};
use super::supervision::Worker;
use crate::wire::{Note, Question, Reply};

/// A component in a worker.
pub(super) struct RemoteCode {
    code: Arc<CodeFile>,
    facts: ComponentFacts,
}

impl RemoteCode {
    /// Opens it in the worker of plugins without folders.
    pub(super) async fn open(shared: Arc<WorkerSet>, file: File) -> Result<RemoteCode, String> {
        let session = shared.main.session().await?;
        let code = CodeFile::new(shared, file);
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
        let loadable = Arc::new(LoadParameters::new(Arc::clone(&self.code), blueprint));
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
