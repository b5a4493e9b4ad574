//! From files to native code: code that was compiled before is looked up, and the rest is compiled, in an order in
//! which a slow file delays as little as possible.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compiled_code::{CodeDigest, CompileError};
use model::error_chain;
use plugin_protocol::GuestCode;

use crate::file_record::{FileRecord, LoadFailure, NativeCode, Task};
use crate::load_context::LoadContext;
use crate::loader::verdict::Verdict;
use crate::loader::{Loader, TaskOutput};
use crate::pins::Pin;
use crate::policy::Grants;
use crate::settled_file::{FileHead, Stamp, read_wasm};

/// How many files are compiled at a time, if the cache gives them turns: each is completely in memory.
const COMPILED_AT_ONCE: usize = 2;

impl Loader {
    /// Loads a permitted file: links it at once if its native code is available, and otherwise looks the code up.
    pub(super) fn load(&mut self, file: &Path, grants: &Grants) {
        let Some(record) = self.files.get_mut(file) else {
            return;
        };
        if record.loaded_with(grants).is_some() || record.failed_with(grants).is_some() {
            return;
        }
        let Some(Ok(FileHead {
            digest,
            code,
            manifest: Ok(manifest),
            signatures,
            ..
        })) = &record.head
        else {
            return;
        };
        if let NativeCode::Ready(component) = &record.code {
            let counters = self.counters.entry(manifest.name.clone()).or_default();
            let linked = self.load_context.link(
                component,
                digest.clone(),
                signatures.clone(),
                manifest.clone(),
                grants.clone(),
                Arc::clone(counters),
            );
            match linked {
                Ok(plugin) => {
                    if let Pin::Key(_) = grants.pin {
                        self.newest.loaded(manifest);
                    }
                    record.loaded = Some(Arc::new(plugin));
                    record.failure = None;
                }
                Err(error) => {
                    record.loaded = None;
                    record.failure = Some(LoadFailure::Link(Box::new(grants.clone()), error));
                }
            }
        } else if let NativeCode::NotRequested = record.code {
            let (load_context, turns) = (Arc::clone(&self.load_context), Arc::clone(&self.readers));
            let (file, digest, code) = (file.to_owned(), digest.clone(), code.clone());
            let task = self.tasks.spawn(async move {
                let _turn = turns.acquire_owned().await;
                let code = Ok(load_context.compiled(&code).await);
                TaskOutput::Code { file, digest, code }
            });
            record.code = NativeCode::Sought(Task(task));
        }
    }

    /// Starts to compile the next files: at a start only after everything that was compiled before is loaded; then
    /// first those that the device ships with, and then the smaller ones.
    pub(super) fn begin_to_compile(&mut self, verdicts: &[(PathBuf, Verdict)]) {
        let is_sought = |record: &FileRecord| {
            matches!(record.code, NativeCode::Sought(_)) || record.is_to_be_read()
        };
        if self.starts && self.files.values().any(is_sought) {
            return;
        }
        let is_compiling = |record: &&FileRecord| matches!(record.code, NativeCode::Compiling(_));
        let compiling = self.files.values().filter(is_compiling).count();
        let mut missing: Vec<_> = verdicts
            .iter()
            .filter_map(|(file, verdict)| {
                let (Verdict::Load(grants), record) = (verdict, self.files.get(file)?) else {
                    return None;
                };
                let is_missing = matches!(record.code, NativeCode::Missing)
                    && record.failed_with(grants).is_none();
                is_missing.then(|| (!grants.is_stock, record.size(), file))
            })
            .collect();
        missing.sort();
        let turns = COMPILED_AT_ONCE.saturating_sub(compiling);
        for (_, _, file) in missing.into_iter().take(turns) {
            self.compile(file);
        }
    }

    fn compile(&mut self, file: &Path) {
        let Some(record) = self.files.get_mut(file) else {
            return;
        };
        let Some(FileHead { digest, code, .. }) = record.head() else {
            return;
        };
        let (digest, code) = (digest.clone(), code.clone());
        let (load_context, file) = (Arc::clone(&self.load_context), file.to_owned());
        let edition = record.stamp.as_ref().map(Stamp::edition);
        let task = self.tasks.spawn(async move {
            let edition = edition.unwrap_or_default();
            let code = compile(&load_context, &file, &digest, code, edition).await;
            let code = code.map(Some);
            TaskOutput::Code { file, digest, code }
        });
        record.code = NativeCode::Compiling(Task(task));
    }
}

/// Returns the native code of the file with these digests of itself and of its code. Another `edition` causes another attempt for a content that
/// failed before.
async fn compile(
    load_context: &LoadContext,
    file: &Path,
    digest: &str,
    code: CodeDigest,
    edition: String,
) -> Result<Arc<dyn GuestCode>, String> {
    let wasm = read_wasm(file.to_owned(), digest.to_owned()).await?;
    let compiled = load_context.compile(file, code, edition, &wasm).await;
    compiled.map_err(|error| {
        let reason = error_chain(&error);
        match error {
            CompileError::FailedBefore { .. } => {
                format!(
                    "{reason}; `touch {}` makes the supervisor try again at once",
                    file.display()
                )
            }
            _ => reason,
        }
    })
}
