//! The start of a container's process, until its service runs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use model::ContainerId;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;
use wasm_service::StartOutcome;
use wasm_service::process::ProcessId;
use wasm_service::record::{self, LAUNCH};

use super::record::ContainerRecord;
use super::{Wasm, WasmState, walls};
use crate::EngineError;

/// How long a process may take to report that its service runs.
const START: Duration = Duration::from_secs(60);
/// The longest message of a process that could not start, in bytes.
const MAX_MESSAGE: u64 = 8 << 10;

impl Wasm {
    /// Starts the process of a container, and returns it once its service runs.
    pub(super) async fn spawn(&self, id: &ContainerId) -> Result<ProcessId, EngineError> {
        let record = self.blocking_for(id, |shared, id| {
            let _changing = shared.changing.lock();
            shared.record_with_user(id)
        });
        let record = record.await?;
        let component = self.compiled(&record.image_id).await?;
        let mut outcome = self.run_process(&record, component.clone()).await?;
        if let StartOutcome::DoesNotLoad(reason) = outcome {
            // Damaged since it was checked, or created by another version of wasmtime or for another processor, as in a
            // state folder that was copied here.
            tracing::warn!(
                image = %record.image_id,
                "the compiled code of an image does not load, compiling it again: {reason}"
            );
            self.shared.config.cache.discard(component).await;
            let component = self.compiled(&record.image_id).await?;
            outcome = self.run_process(&record, component.clone()).await?;
            if let StartOutcome::DoesNotLoad(reason) = outcome {
                self.shared.config.cache.discard(component).await;
                return Err(self.unloadable(&record, reason).await);
            }
        }
        match outcome {
            StartOutcome::Ready | StartOutcome::AlreadyServed => {}
            StartOutcome::DoesNotLoad(reason) | StartOutcome::Failed(reason) => {
                return Err(failed(&record, io::Error::other(reason)));
            }
        }
        let state = self.blocking_for(id, |shared, id| Ok(shared.state(id)));
        let state = state.await?;
        walls::note_missing(&record.name, state.confinement.as_ref());
        state.process.ok_or_else(|| {
            let error = io::Error::other("its process did not identify itself");
            failed(&record, error)
        })
    }

    /// Runs a process with this compiled component until it reports the result.
    async fn run_process(
        &self,
        record: &ContainerRecord,
        component: PathBuf,
    ) -> Result<StartOutcome, EngineError> {
        let of = record.clone();
        self.blocking(move |shared| {
            let launch = shared.launch(&of, component)?;
            let path = shared.folders.container(&of.id).join(LAUNCH);
            record::write_volatile(&path, &launch).map_err(|error| failed(&of, error))
        })
        .await?;
        let folder = self.shared.folders.container(&record.id);
        let started = start(&self.shared, &folder).await;
        started.map_err(|error| failed(record, error))
    }

    /// Records and returns the error that freshly compiled code does not load either, so that a service is not compiled
    /// again and again.
    async fn unloadable(&self, record: &ContainerRecord, reason: String) -> EngineError {
        let shared = &self.shared;
        let component = shared.folders.component(record.image_id.as_str());
        let name = component.display().to_string();
        let error = shared.config.cache.unusable(&name, reason);
        let text = error.to_string();
        let noted = self.blocking_for(&record.id, move |shared, id| {
            let _changing = shared.changing.lock();
            let mut state = shared.state(id);
            if !state.is_served() {
                state.fail(text);
                shared.write_state(id, &state);
            }
            Ok(())
        });
        match noted.await {
            Ok(()) => failed(record, error),
            Err(error) => error,
        }
    }
}

fn failed(
    record: &ContainerRecord,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> EngineError {
    EngineError::failed(format!("start the container `{}`", record.name), error)
}

async fn start(shared: &WasmState, folder: &Path) -> io::Result<StartOutcome> {
    let mut child = Command::new(&shared.config.runner)
        .arg("wasm-service")
        .arg("--record")
        .arg(folder)
        .env_clear()
        // The process accesses this folder as another user, who may not be able to traverse its
        // path.
        .current_dir(&shared.folders.root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(false)
        .spawn()?;
    let output = child.stdout.take();
    // It outlives us, and the caller; as long as we run, it does not become a zombie.
    tokio::spawn(async move { child.wait().await });
    let mut message = String::new();
    if let Some(output) = output {
        let read = async { output.take(MAX_MESSAGE).read_to_string(&mut message).await };
        match timeout(START, read).await {
            Ok(read) => read?,
            Err(_) => return Err(io::Error::other("its process does not answer")),
        };
    }
    Ok(StartOutcome::read(&message))
}
