//! Waiting for the running supervisor to load or refuse a plugin's file, for the commands that write one.
//!
//! The supervisor reports which file it has loaded or refused by its digest, so what it reports about another content of
//! the same file does not count.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout_at};

use crate::output;
use crate::running_supervisor::RunningSupervisor;

/// How often the supervisor's report is read.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long a refusal has to last: a report from before the supervisor noticed the file, or read the changed policy, may
/// still refuse the same content.
const CONFIRMED_AFTER: Duration = Duration::from_secs(2);
/// How long a supervisor may take to list a file that is in one of its folders.
const LISTED_WITHIN: Duration = Duration::from_secs(20);

/// A plugin's file in a plugin folder.
pub(crate) struct PlacedFile<'a> {
    pub(crate) plugin: &'a str,
    pub(crate) version: String,
    pub(crate) file: &'a Path,
    /// SHA-256 of the file.
    pub(crate) digest: &'a str,
    /// The supervisor's state folder.
    pub(crate) state_dir: &'a Path,
}

/// What a supervisor reports about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReportedState {
    Runs,
    Refused {
        reason: String,
        /// The version that stays in use in its place.
        in_use: Option<String>,
    },
    OtherBoard,
    Loading,
    /// It reports nothing about the file.
    Unlisted,
    /// It does not answer; says why.
    NoAnswer(String),
}

/// What is certain after the wait, if the supervisor does not refuse the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Running,
    /// No supervisor is running.
    NoSupervisor,
    /// The command was not to wait.
    NotAwaited,
}

impl PlacedFile<'_> {
    /// Prints that the supervisor runs the plugin, once it does; waits no longer than `within`. If that is zero, or no
    /// supervisor is running, prints how to find out instead.
    ///
    /// # Errors
    /// The supervisor refuses the file, or has not decided in time, or the user ends the wait. The file stays.
    pub(crate) fn report_verdict(&self, within: Duration) -> Result<()> {
        let Self {
            plugin, version, ..
        } = self;
        match self.verdict(within)? {
            Verdict::Running => output::print(format_args!("{plugin} {version} runs\n")),
            Verdict::NoSupervisor => output::print(format_args!(
                "no supervisor is running with the state folder `{}`: it will load the plugin at its next start (if one runs with another state folder, name that with --state-dir or --config)\n",
                self.state_dir.display()
            )),
            Verdict::NotAwaited => output::print(format_args!(
                "the running supervisor loads it; this shows whether it has: {}\n",
                self.list_command()
            )),
        }
    }

    /// Prints the file, what a command has changed besides, and the verdict, as JSON.
    ///
    /// # Errors
    /// Those of [`Self::report_verdict`], which are also printed.
    pub(crate) fn report_verdict_as_json(&self, within: Duration, changes: Value) -> Result<()> {
        let verdict = self.verdict(within);
        output::print_json(&self.json(changes, &verdict))?;
        verdict.map(|_| ())
    }

    /// A path that is not UTF-8 appears with replacement characters.
    fn json(&self, changes: Value, verdict: &Result<Verdict>) -> Value {
        let mut report = json!({
            "name": self.plugin, "version": self.version, "file": self.file.to_string_lossy(), "digest": self.digest,
        });
        if let (Value::Object(report), Value::Object(changes)) = (&mut report, changes) {
            report.extend(changes);
        }
        match verdict {
            Ok(verdict) => report["state"] = json!(verdict),
            Err(error) => {
                report["state"] = "not-running".into();
                report["error"] = format!("{error:#}").into();
            }
        }
        report
    }

    /// Waits until the supervisor runs the plugin, no longer than `within`, and not at all if none is running.
    fn verdict(&self, within: Duration) -> Result<Verdict> {
        if RunningSupervisor::find(self.state_dir)?.is_none() {
            return Ok(Verdict::NoSupervisor);
        }
        if within.is_zero() {
            return Ok(Verdict::NotAwaited);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let verdict = runtime.block_on(self.wait(within));
        // A request that is not answered must not delay the end of the command.
        runtime.shutdown_background();
        verdict.map(|()| Verdict::Running)
    }

    async fn wait(&self, within: Duration) -> Result<()> {
        let mut interrupts =
            signal(SignalKind::interrupt()).context("failed to receive interrupts")?;
        output::note(format_args!(
            "waiting for at most {} s until the supervisor has loaded or refused {} {} (Ctrl-C ends the wait; the file stays)",
            within.as_secs(),
            self.plugin,
            self.version
        ));
        tokio::select! {
            _ = interrupts.recv() => bail!(
                "interrupted while waiting: {} {} stays installed in `{}`; this shows whether it runs: {}",
                self.plugin,
                self.version,
                self.file.display(),
                self.list_command()
            ),
            verdict = self.follow(within) => verdict,
        }
    }

    /// Reads the supervisor's reports until they contain a verdict.
    async fn follow(&self, within: Duration) -> Result<()> {
        let begin = Instant::now();
        let deadline = begin + within;
        let mut refused_since = None;
        let mut listed_at = begin;
        loop {
            let state = self.read_state(deadline).await;
            match &state {
                ReportedState::Runs => return Ok(()),
                ReportedState::OtherBoard => bail!(
                    "{} {} is for boards of other types than this one: the supervisor does not load it",
                    self.plugin,
                    self.version
                ),
                ReportedState::Refused { .. } => {
                    let since = *refused_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= CONFIRMED_AFTER {
                        return Err(self.explain(&state, within));
                    }
                }
                ReportedState::Unlisted if listed_at.elapsed() >= LISTED_WITHIN => {
                    return Err(self.explain(&state, within));
                }
                ReportedState::Unlisted | ReportedState::Loading | ReportedState::NoAnswer(_) => {}
            }
            if !matches!(state, ReportedState::Refused { .. }) {
                refused_since = None;
            }
            if state != ReportedState::Unlisted {
                listed_at = Instant::now();
            }
            if Instant::now() >= deadline {
                return Err(self.explain(&state, within));
            }
            sleep(INTERVAL).await;
        }
    }

    /// Returns what the supervisor reports now.
    async fn read_state(&self, deadline: Instant) -> ReportedState {
        let state_dir = self.state_dir.to_owned();
        let request = tokio::task::spawn_blocking(move || read_reports(&state_dir));
        match timeout_at(deadline, request).await {
            Ok(Ok(Ok(plugins))) => find_state(&plugins, self.file, self.digest),
            Ok(Ok(Err(error))) => ReportedState::NoAnswer(format!("{error:#}")),
            Ok(Err(_)) => ReportedState::NoAnswer("the request was interrupted".to_owned()),
            Err(_) => ReportedState::NoAnswer("it has not answered in time".to_owned()),
        }
    }

    /// Creates the error for a state other than that the plugin runs, with the next step.
    fn explain(&self, state: &ReportedState, within: Duration) -> anyhow::Error {
        let Self {
            plugin, version, ..
        } = self;
        let (file, seconds) = (self.file.display(), within.as_secs());
        let list = self.list_command();
        match state {
            ReportedState::Refused {
                reason,
                in_use: Some(in_use),
            } => anyhow!(
                "the supervisor refuses {plugin} {version}: {reason}\nversion {in_use} stays in use; this puts its file back: {}",
                self.command(&format!("rollback {plugin}"))
            ),
            ReportedState::Refused {
                reason,
                in_use: None,
            } => anyhow!(
                "the supervisor refuses {plugin} {version}: {reason}\nthe file stays in its place; this removes it: `rm {}`",
                shell_word(self.file)
            ),
            ReportedState::Unlisted => anyhow!(
                "the supervisor does not list `{file}`: if it reads other plugin folders than this command, give --config with its configuration file; the file stays, and this shows whether it runs: {list}"
            ),
            ReportedState::NoAnswer(reason) => anyhow!(
                "no verdict about {plugin} {version} within {seconds} s: {reason}; `{file}` stays, and this shows whether it runs: {list}"
            ),
            ReportedState::Runs | ReportedState::OtherBoard | ReportedState::Loading => anyhow!(
                "the supervisor has neither loaded nor refused {plugin} {version} within {seconds} s; `{file}` stays, and this shows whether it runs: {list}"
            ),
        }
    }

    fn list_command(&self) -> String {
        self.command("list")
    }

    /// Returns a command about the same supervisor, to be pasted.
    fn command(&self, words: &str) -> String {
        format!(
            "`supervisor plugins {words} --state-dir {}`",
            shell_word(self.state_dir)
        )
    }
}

/// Returns a path as a word of a command that somebody may paste into a shell.
fn shell_word(path: &Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

/// Returns the plugins of the running supervisor, as in `GET /v3/plugins`.
fn read_reports(state_dir: &Path) -> Result<Vec<Value>> {
    let supervisor = RunningSupervisor::find(state_dir)?;
    let supervisor = supervisor.context("the supervisor has stopped")?;
    let mut body = supervisor.get("/v3/plugins")?.ok()?;
    Ok(serde_json::from_value(body["plugins"].take()).unwrap_or_default())
}

/// Returns what a supervisor with these plugins has done with the content of this digest in `file`.
fn find_state(plugins: &[Value], file: &Path, digest: &str) -> ReportedState {
    let text = |plugin: &Value, key: &str| plugin[key].as_str().map(str::to_owned);
    let is_file = |plugin: &&Value| plugin["file"].as_str().map(Path::new) == Some(file);
    let mut of_digest = plugins
        .iter()
        .filter(|plugin| plugin["digest"] == digest || plugin["refusedDigest"] == digest);
    // The supervisor may see the file under another path than this command.
    let Some(plugin) = plugins.iter().find(is_file).or_else(|| of_digest.next()) else {
        return ReportedState::Unlisted;
    };
    let (refused, state) = (text(plugin, "refused"), plugin["state"].as_str());
    let is_digest = |key: &str| plugin[key] == digest;
    // A file that the supervisor must not read is refused without a digest.
    let is_unread = plugin["refusedDigest"].is_null();
    match refused {
        Some(reason) if is_digest("refusedDigest") || is_unread => ReportedState::Refused {
            reason,
            in_use: match state {
                Some("running") => text(plugin, "version"),
                _ => None,
            },
        },
        None if is_digest("digest") && state == Some("running") => ReportedState::Runs,
        None if is_digest("digest") && state == Some("other-board") => ReportedState::OtherBoard,
        _ => ReportedState::Loading,
    }
}

#[cfg(test)]
mod tests;
