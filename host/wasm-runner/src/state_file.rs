//! The state of a container, as its process writes it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use wasm_service::log_file::now_ms;
use wasm_service::process::ProcessId;
use wasm_service::record::{self, STATE, State, Status};

/// The container's state, written at each change. That it cannot be written is no reason for the
/// service to end; the engine finds the process by the state before.
pub(crate) struct StateFile {
    path: PathBuf,
    pub(crate) state: State,
    runs: u64,
}

impl StateFile {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(STATE);
        // What is there of an earlier process matters for its count alone; damaged is as good as none.
        let before = record::read::<State>(&path).ok().flatten();
        let mut state = before.unwrap_or_else(State::created);
        state.process = Some(ProcessId::own().context("failed to identify the process")?);
        state.error = None;
        Ok(StateFile {
            path,
            state,
            runs: 0,
        })
    }

    pub(crate) fn runs(&mut self) {
        if self.runs > 0 {
            self.state.restarts += 1;
        }
        self.runs += 1;
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
        self.state.exit_code = Some(exit_code);
        self.state.finished_at_ms = Some(now_ms());
        self.save();
    }

    fn save(&self) {
        if let Err(error) = record::write(&self.path, &self.state) {
            tracing::warn!(%error, "failed to write `{}`", self.path.display());
        }
    }
}
