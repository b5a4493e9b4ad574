//! The supervisor that `cargo xtask run` starts: its process, and what is asked of it over HTTP.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::LOOK_AGAIN;
use super::engine_choice::Engine;
use super::traces::{Traces, apart_from_the_terminal};
use crate::layout::Layout;
use crate::processes;

/// How long the start may take.
const START: Duration = Duration::from_secs(60);
/// How long plugins may take to load: a first start compiles them.
const PLUGINS: Duration = Duration::from_secs(60);
/// How long the sample may take to run before it is said that it does not yet.
const SERVICES: Duration = Duration::from_secs(20);
/// How long a new device may take to register, to pull and to start its first release.
const FOLLOWS: Duration = Duration::from_secs(60);
/// How long the supervisor may take to end; services are taken away after that.
const END: Duration = Duration::from_millis(1200);

/// The running supervisor.
pub(super) struct Device {
    process: Child,
    pub(super) base: String,
    client: reqwest::Client,
    /// Known once the device answers.
    pub(super) key: String,
}

impl Device {
    pub(super) fn start(layout: &Layout, listen: SocketAddr, traces: &Traces) -> Result<Self> {
        let mut command = Command::new(layout.supervisor());
        command
            .args(["run", "--listen", &listen.to_string()])
            // A device on a developer's machine neither reboots nor renames it.
            .args(["--host-actions", "rehearse"])
            .args(["--engine", traces.engine.name()])
            .arg("--state-dir")
            .arg(traces.kept.device())
            .arg("--host-root")
            .arg(traces.kept.host_root());
        if let Engine::Docker(address) = &traces.engine {
            command.args(["--docker-host", address]);
        }
        let process = apart_from_the_terminal(&mut command)
            .spawn()
            .context("failed to start the supervisor")?;
        Ok(Device {
            process,
            base: format!("http://{listen}"),
            client: reqwest::Client::new(),
            key: String::new(),
        })
    }

    /// Waits until all services run that the cloud wants; `false` where they take long.
    pub(super) async fn follows(&mut self, services: usize) -> Result<bool> {
        let deadline = Instant::now() + FOLLOWS;
        while Instant::now() < deadline {
            self.must_run()?;
            let answer = self.client.get(self.url("/v2/state/status")).send().await?;
            let state: Value = answer.json().await?;
            let running = state["containers"].as_array().is_some_and(|all| {
                all.len() == services && all.iter().all(|one| one["status"] == "Running")
            });
            if running {
                return Ok(true);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(false)
    }

    /// Waits until it answers, and reads its key.
    pub(super) async fn until_it_answers(&mut self, layout: &Layout, state: &Path) -> Result<()> {
        let deadline = Instant::now() + START;
        loop {
            self.must_run()?;
            if let Ok(answer) = self.client.get(format!("{}/ping", self.base)).send().await
                && answer.status().is_success()
            {
                break;
            }
            if Instant::now() > deadline {
                bail!(
                    "the supervisor did not answer on {} within {START:?}",
                    self.base
                );
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.key = api_key(layout, state)?;
        Ok(())
    }

    /// Waits until the plugins' routes are there.
    pub(super) async fn until_plugins_are_loaded(&self) -> Result<()> {
        let request = async {
            loop {
                let answer = self.client.get(self.url("/v3/plugins")).send().await?;
                let answer: Value = answer.json().await?;
                let mut plugins = answer["plugins"].as_array().into_iter().flatten();
                if plugins.all(|plugin| plugin["state"] != "loading") {
                    return Ok::<(), reqwest::Error>(());
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        match tokio::time::timeout(PLUGINS, request).await {
            Ok(answer) => answer.context("failed to request the list of plugins"),
            Err(_) => bail!("the plugins were not loaded within {PLUGINS:?}; see the log above"),
        }
    }

    /// Fails where the supervisor has ended.
    pub(super) fn must_run(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            Some(status) => bail!("the supervisor ended unexpectedly ({status}); its log is above"),
            None => Ok(()),
        }
    }

    pub(super) async fn set_target(&self, target: &Value) -> Result<()> {
        let answer = self
            .client
            .post(self.url("/v2/local/target-state"))
            .json(target)
            .send()
            .await?;
        let status = answer.status();
        let text = answer.text().await?;
        if !status.is_success() {
            bail!("the device refused the target state: {status} {text}");
        }
        Ok(())
    }

    /// Takes all services out of the target.
    pub(super) async fn empty_target(&self) -> Result<()> {
        let empty = json!({ "local": { "name": "sample", "config": {}, "apps": {} } });
        self.set_target(&empty).await
    }

    /// Waits until all services of the target run; `false` where they take long.
    pub(super) async fn services_run(&mut self) -> Result<bool> {
        let deadline = Instant::now() + SERVICES;
        while Instant::now() < deadline {
            self.must_run()?;
            let answer = self.client.get(self.url("/v2/state/status")).send().await?;
            let state: Value = answer.json().await?;
            let containers = state["containers"].as_array();
            if state["appState"] == "applied"
                && containers.is_some_and(|all| all.iter().all(|one| one["status"] == "Running"))
            {
                return Ok(true);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(false)
    }

    /// A path of the API with the key.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}?apikey={}", self.base, self.key)
    }

    /// Ends the supervisor, which leaves its services running.
    pub(super) async fn end(&mut self) -> io::Result<()> {
        if let Some(pid) = processes::pid(self.process.id())
            && self.process.try_wait()?.is_none()
        {
            kill_process(pid, Signal::TERM)?;
        }
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            if self.process.try_wait()?.is_some() {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.process.kill()?;
        self.process.wait().map(drop)
    }
}

fn api_key(layout: &Layout, state: &Path) -> Result<String> {
    let output = Command::new(layout.supervisor())
        .args(["api-key", "show", "--state-dir"])
        .arg(state)
        .output()
        .context("failed to request the API key")?;
    if !output.status.success() {
        bail!(
            "failed to read the API key: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
