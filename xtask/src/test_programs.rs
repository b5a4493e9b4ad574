//! The test programs of the workspace, run in two rows: the cloud's beside the device's.
//!
//! Cargo runs one program after the other, and for much of the time both processors wait for what the
//! tests started. The two halves of the workspace share nothing on a machine: tests of the cloud use
//! PostgreSQL, NATS and browsers, those of the device Docker, the firewall and D-Bus. Programs of one half
//! do share, so they take turns.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cargo;

/// A program that cargo built from tests.
struct TestProgram {
    file: PathBuf,
    /// Its package's, where tests expect to be run.
    folder: PathBuf,
    /// What it is built from, below the repository.
    source: PathBuf,
}

/// All test programs, by half.
pub(crate) struct TestPrograms {
    cloud: Vec<TestProgram>,
    device: Vec<TestProgram>,
}

impl TestPrograms {
    /// Has cargo build those of `packages`.
    ///
    /// # Errors
    /// Names the command that failed; cargo has shown why.
    pub(crate) fn build(packages: &[String]) -> Result<Self> {
        let mut build = cargo::cargo(["test", "--no-run"]);
        build
            .arg("--message-format=json-render-diagnostics")
            .args(packages)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        let messages = build.output().context("failed to start cargo")?;
        if !messages.status.success() {
            bail!("building the tests failed ({})", messages.status);
        }
        let repository = cargo::repository();
        let mut halves = TestPrograms {
            cloud: Vec::new(),
            device: Vec::new(),
        };
        for line in messages.stdout.split(|byte| *byte == b'\n') {
            let message: Value = serde_json::from_slice(line).unwrap_or_default();
            let Some(program) = TestProgram::of_message(&message, &repository) else {
                continue;
            };
            if program.source.starts_with("cloud") {
                halves.cloud.push(program);
            } else {
                halves.device.push(program);
            }
        }
        Ok(halves)
    }

    /// Runs all of them, in an environment that `prepare` completes, and shows what each prints when it ends.
    ///
    /// # Errors
    /// Names the programs with tests that failed.
    pub(crate) fn run(&self, prepare: impl Fn(&mut Command) + Sync) -> Result<()> {
        let prepare = &prepare;
        let failed = std::thread::scope(|threads| {
            let rows = [&self.cloud, &self.device].map(|row| {
                threads.spawn(move || -> Result<Vec<&Path>> {
                    let mut failed = Vec::new();
                    for program in row {
                        if !program.run(prepare)? {
                            failed.push(program.source.as_path());
                        }
                    }
                    Ok(failed)
                })
            });
            let mut failed = Vec::new();
            for row in rows {
                match row.join() {
                    Ok(of_row) => failed.extend(of_row?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            anyhow::Ok(failed)
        })?;
        if !failed.is_empty() {
            let names = failed.iter().map(|source| source.display().to_string());
            bail!("tests failed in {}", names.collect::<Vec<_>>().join(", "));
        }
        Ok(())
    }
}

impl TestProgram {
    /// The one that a message of cargo announces, if it does.
    fn of_message(message: &Value, repository: &Path) -> Option<Self> {
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let source = Path::new(message["target"]["src_path"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(TestProgram {
            file: PathBuf::from(message["executable"].as_str()?),
            folder: folder.to_owned(),
            source: source.strip_prefix(repository).unwrap_or(source).to_owned(),
        })
    }

    /// Whether all of its tests passed.
    fn run(&self, prepare: &impl Fn(&mut Command)) -> Result<bool> {
        println!("running {}", self.source.display());
        let mut printed = tempfile::tempfile()?;
        let mut test = Command::new(&self.file);
        test.current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null())
            .stdout(printed.try_clone()?)
            .stderr(printed.try_clone()?);
        prepare(&mut test);
        let started = Instant::now();
        let status = test
            .status()
            .with_context(|| format!("failed to start `{}`", self.file.display()))?;
        show(&mut printed, &self.source, started.elapsed().as_secs())?;
        Ok(status.success())
    }
}

/// In one piece, whatever runs beside it.
fn show(printed: &mut File, source: &Path, seconds: u64) -> Result<()> {
    let mut text = Vec::new();
    printed.rewind()?;
    printed.read_to_end(&mut text)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{}, {seconds} s:", source.display())?;
    out.write_all(&text)?;
    Ok(out.flush()?)
}
