//! What a worker needs to load a plugin into each of its processes.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use plugin_protocol::{Blueprint, Failure};
use tokio::sync::Mutex;

use super::WorkerSet;
use super::session::Session;
use crate::wire::{Note, Question, Reply};

/// Returns a new number for code or a plugin; none is used twice.
fn next() -> u64 {
    static LATEST: AtomicU64 = AtomicU64::new(0);
    LATEST.fetch_add(1, SeqCst) + 1
}

/// A compiled file.
pub(super) struct CodeFile {
    pub(super) id: u64,
    /// Open for as long as a worker may need to open it.
    pub(super) file: File,
    pub(super) shared: Arc<WorkerSet>,
}

impl CodeFile {
    pub(super) fn new(shared: Arc<WorkerSet>, file: File) -> CodeFile {
        CodeFile {
            id: next(),
            file,
            shared,
        }
    }
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
    pub(super) fn new(code: Arc<CodeFile>, blueprint: Blueprint) -> LoadParameters {
        LoadParameters {
            id: next(),
            code,
            blueprint,
            loaded: AtomicU64::new(0),
            loading: Mutex::default(),
        }
    }

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
