//! The state of a container, as written by its process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use model::ContainerHealth;
use parking_lot::Mutex;
use wasm_service::log_file::now_ms;
use wasm_service::process::ProcessId;
use wasm_service::record::{self, STATE, State, Status};

/// The container's state, written at each change. If it cannot be written, the service does not end; the engine finds
/// the process by the previous state.
pub(crate) struct StateFile {
    path: PathBuf,
    pub(crate) state: State,
    runs: u64,
    /// When the current run began.
    begun: Option<Instant>,
}

/// The state file of a process, shared by the runs of its service and the health checks.
pub(crate) type SharedStateFile = Arc<Mutex<StateFile>>;

/// One run of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    number: u64,
    pub(crate) begun: Instant,
}

impl StateFile {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(STATE);
        // Of an earlier process's state only the counts matter; a damaged one counts as missing.
        let before = record::read::<State>(&path).ok().flatten();
        let mut state = before.unwrap_or_else(State::created);
        state.process = Some(ProcessId::own().context("failed to identify the process")?);
        state.error = None;
        state.health = None;
        Ok(StateFile {
            path,
            state,
            runs: 0,
            begun: None,
        })
    }

    /// Returns the current run, if there is one.
    pub(crate) fn run(&self) -> Option<Run> {
        let begun = self.begun?;
        Some(Run {
            number: self.runs,
            begun,
        })
    }

    /// Notes the result of a run's health check, if that run has not ended.
    pub(crate) fn note_health(&mut self, run: Run, health: ContainerHealth) {
        if self.run() == Some(run) && self.state.health != Some(health) {
            self.state.health = Some(health);
            self.save();
        }
    }

    /// Notes that a run begins; `is_checked` says whether the service has a health check.
    pub(crate) fn runs(&mut self, is_checked: bool) {
        if self.runs > 0 {
            self.state.restarts += 1;
        }
        self.runs += 1;
        self.begun = Some(Instant::now());
        self.state.health = is_checked.then_some(ContainerHealth::Starting);
        self.state.status = Status::Running;
        self.state.started_at_ms = Some(now_ms());
        self.save();
    }

    pub(crate) fn waits(&mut self, exit_code: i64) {
        self.state.status = Status::Restarting;
        self.end(exit_code);
    }

    pub(crate) fn exited(&mut self, exit_code: i64) {
        self.state.status = Status::Exited;
        self.end(exit_code);
    }

    pub(crate) fn fail(&mut self, error: &anyhow::Error) {
        self.state.fail(format!("{error:#}"));
        self.save();
    }

    fn end(&mut self, exit_code: i64) {
        self.begun = None;
        self.state.health = None;
        self.state.exit_code = Some(exit_code);
        self.state.finished_at_ms = Some(now_ms());
        self.save();
    }

    fn save(&self) {
        if let Err(error) = record::write(&self.path, &self.state) {
            tracing::warn!(
                %error,
                path = %self.path.display(),
                "failed to write `{}`",
                self.path.display()
            );
        }
    }
}
