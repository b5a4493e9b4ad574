//! Everything that one run of `cargo xtask run` leaves on the machine. It is recorded in the run's temporary folder, so
//! that the next run can remove it if this one is killed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::children::apart_from_the_terminal;
use super::engine_choice::Engine;
use super::samples;
use super::session_folder::SessionFolder;
use crate::layout::Layout;
use crate::processes;

/// The prefix of our temporary folders.
pub(super) const FOLDER_PREFIX: &str = "supervisor-run-";
/// The record, in the temporary folder.
const RECORD: &str = "run.json";
/// The time in whole seconds that services may take to stop before they are killed.
const GRACE: u64 = 1;
/// The time limit for removing all of them; with the rest it stays below the 5 s that Ctrl-C may take.
const SERVICES_GONE: Duration = Duration::from_millis(3000);
/// The time limit for ending the supervisor of a killed run.
const END: Duration = Duration::from_secs(2);

/// One run's folders, engine and images.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Traces {
    /// The temporary folder.
    pub(super) folder: PathBuf,
    /// The parts that can be kept.
    pub(super) kept: SessionFolder,
    pub(super) engine: Engine,
    /// The images that were created for the sample.
    pub(super) images: Vec<String>,
    /// The session is kept, and with it volumes and pulled images.
    pub(super) keep: bool,
}

impl Traces {
    /// Writes the record, as belonging to this process.
    pub(super) fn record(&self) -> Result<()> {
        let docker = match &self.engine {
            Engine::Docker(address) => Some(address),
            Engine::Wasm => None,
        };
        let record = json!({
            "owner": std::process::id(),
            "state": self.kept.folder,
            "docker": docker,
            "images": self.images,
            "keep": self.keep,
        });
        let file = self.folder.join(RECORD);
        fs::write(&file, record.to_string())
            .with_context(|| format!("failed to write `{}`", file.display()))
    }

    /// Returns the record of `folder` and its process, or `None` if there is no readable one.
    fn read(folder: &Path) -> Option<(Pid, Self)> {
        let text = fs::read_to_string(folder.join(RECORD)).ok()?;
        let record: Value = serde_json::from_str(&text).ok()?;
        let owner = u32::try_from(record["owner"].as_u64()?).ok()?;
        let images = record["images"].as_array()?.iter();
        let traces = Traces {
            folder: folder.to_owned(),
            kept: SessionFolder {
                folder: record["state"].as_str()?.into(),
            },
            engine: match record["docker"].as_str() {
                Some(address) => Engine::Docker(address.to_owned()),
                None => Engine::Wasm,
            },
            images: images
                .filter_map(|image| image.as_str().map(str::to_owned))
                .collect(),
            keep: record["keep"].as_bool()?,
        };
        Some((processes::pid(owner)?, traces))
    }

    /// Removes everything that the stopped device has on its engines, and the sample's images.
    ///
    /// # Errors
    /// If something remains. It stays on record, and the next run tries again.
    pub(super) async fn remove_services(&self, layout: &Layout) -> Result<()> {
        if self.kept.device().exists() {
            self.ask_the_supervisor(layout).await?;
        }
        if let Engine::Docker(address) = &self.engine {
            samples::remove_images(address, &self.images).await?;
        }
        Ok(())
    }

    async fn ask_the_supervisor(&self, layout: &Layout) -> Result<()> {
        let mut command = Command::new(layout.supervisor());
        command.args(["remove-services", "--grace", &GRACE.to_string()]);
        self.show_to(&mut command);
        if !self.keep {
            command.arg("--all");
        }
        apart_from_the_terminal(&mut command);
        let mut process = tokio::process::Command::from(command)
            .spawn()
            .context("failed to start the supervisor's program")?;
        let Ok(status) = timeout(SERVICES_GONE, process.wait()).await else {
            process.kill().await?;
            bail!("not all services were gone within {SERVICES_GONE:?}");
        };
        match status? {
            status if status.success() => Ok(()),
            status => bail!("services were left ({status}); see above"),
        }
    }

    /// Points the supervisor's program to this session: its engine and its folders.
    pub(super) fn show_to(&self, command: &mut Command) {
        command
            .args(["--engine", self.engine.name()])
            .arg("--state-dir")
            .arg(self.kept.device())
            .arg("--host-root")
            .arg(self.kept.host_root());
        if let Engine::Docker(address) = &self.engine {
            command.args(["--docker-host", address]);
        }
    }

    /// Removes the temporary folder; if the session is kept in it, everything else in the folder.
    pub(super) fn remove_folder(&self) -> Result<()> {
        let failed = || format!("failed to remove `{}`", self.folder.display());
        if !(self.keep && self.kept.folder.starts_with(&self.folder)) {
            return fs::remove_dir_all(&self.folder).with_context(failed);
        }
        let samples = self.samples();
        if samples.exists() {
            fs::remove_dir_all(samples).with_context(failed)?;
        }
        fs::remove_file(self.folder.join(RECORD)).with_context(failed)
    }

    /// Returns the folder of the sample's compose files, and of the registry with their images.
    pub(super) fn samples(&self) -> PathBuf {
        self.folder.join("sample")
    }
}

/// Ends the supervisors, clouds and registries of runs that were killed, and returns what else they left.
pub(super) fn end_killed_runs() -> Vec<Traces> {
    let mut left_over = Vec::new();
    for entry in fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        if !entry
            .file_name()
            .to_string_lossy()
            .starts_with(FOLDER_PREFIX)
        {
            continue;
        }
        // Anybody can create a folder with this name, and the record determines what is removed.
        let is_ours = entry.metadata().is_ok_and(|folder| {
            folder.is_dir() && folder.uid() == rustix::process::geteuid().as_raw()
        });
        let Some((owner, traces)) = Traces::read(&entry.path()).filter(|_| is_ours) else {
            continue;
        };
        if processes::is_xtask(owner) {
            continue;
        }
        println!(
            "an earlier run (process {}) was killed: removing what it left",
            owner.as_raw_nonzero()
        );
        let of_both =
            [&traces.folder, &traces.kept.folder].map(|folder| processes::that_name(folder));
        for process in of_both.into_iter().flatten() {
            let command = processes::command_line(process);
            // Services are not ended here: their engine stops them properly.
            if matches!(command.split('\0').nth(1), Some("run" | "serve")) {
                processes::end(process, Signal::TERM, END);
            }
        }
        left_over.push(traces);
    }
    left_over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_traces_are_read_again() {
        for (engine, keep) in [
            (Engine::Docker("unix:///run/docker.sock".into()), false),
            (Engine::Wasm, true),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let traces = Traces {
                folder: folder.path().to_owned(),
                kept: SessionFolder {
                    folder: "/somewhere/state".into(),
                },
                engine,
                images: vec!["hello:latest".into()],
                keep,
            };
            traces.record().unwrap();
            let (owner, read) = Traces::read(folder.path()).unwrap();
            assert_eq!(owner, rustix::process::getpid());
            assert_eq!(read, traces);
        }
    }

    #[test]
    fn a_kept_session_survives_the_temporary_folder_around_it() {
        for keep in [true, false] {
            let parent = tempfile::tempdir().unwrap();
            let traces = Traces {
                folder: parent.path().join("run"),
                kept: SessionFolder {
                    folder: parent.path().join("run/state"),
                },
                engine: Engine::Wasm,
                images: Vec::new(),
                keep,
            };
            fs::create_dir_all(traces.kept.device()).unwrap();
            fs::create_dir_all(traces.samples()).unwrap();
            traces.record().unwrap();
            traces.remove_folder().unwrap();
            assert_eq!(traces.kept.device().exists(), keep);
            assert!(!traces.samples().exists());
            assert_eq!(Traces::read(&traces.folder), None);
        }
    }
}
