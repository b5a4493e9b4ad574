//! The supervisor that `cargo xtask run` starts: its process, and requests to it over HTTP.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::LOOK_AGAIN;
use super::children::{self, apart_from_the_terminal};
use super::http_client::http_client;
use super::traces::Traces;
use crate::layout::Layout;

/// The time limit for starting.
const START: Duration = Duration::from_secs(60);
/// The time limit for loading plugins: the first start compiles them.
const PLUGINS: Duration = Duration::from_secs(60);
/// The time after which a sample that does not run is reported.
const SERVICES: Duration = Duration::from_secs(20);
/// The time limit for a new device to register, and to pull and start its first release.
const FOLLOWS: Duration = Duration::from_secs(60);
/// The time limit for ending the supervisor; services are removed after that.
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
            // A device on a developer's machine must neither reboot nor rename it.
            .args(["--host-actions", "rehearse"]);
        traces.show_to(&mut command);
        let process = apart_from_the_terminal(&mut command)
            .spawn()
            .context("failed to start the supervisor")?;
        Ok(Device {
            process,
            base: format!("http://{listen}"),
            client: http_client()?,
            key: String::new(),
        })
    }

    /// Waits until all services that the cloud wants are running; returns `false` if that takes too
    /// long.
    pub(super) async fn follows(&mut self, services: usize) -> Result<bool> {
        self.shows(FOLLOWS, |state| all_running(state) == Some(services))
            .await
    }

    /// Waits until the device's state satisfies `so`; returns `false` if that takes longer.
    async fn shows(&mut self, within: Duration, so: impl Fn(&Value) -> bool) -> Result<bool> {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            self.must_run()?;
            let answer = self.client.get(self.url("/v2/state/status")).send().await?;
            if so(&answer.json().await?) {
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

    /// Waits until the plugins' routes exist.
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

    /// Fails if the supervisor has ended.
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

    /// Removes all services from the target.
    pub(super) async fn empty_target(&self) -> Result<()> {
        let empty = json!({ "local": { "name": "sample", "config": {}, "apps": {} } });
        self.set_target(&empty).await
    }

    /// Waits until all services of the target are running; returns `false` if that takes too long.
    pub(super) async fn services_run(&mut self) -> Result<bool> {
        let so = |state: &Value| state["appState"] == "applied" && all_running(state).is_some();
        self.shows(SERVICES, so).await
    }

    /// Returns the address of a path of the API, with the key.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}?apikey={}", self.base, self.key)
    }

    /// Ends the supervisor, which leaves its services running.
    pub(super) async fn end(&mut self) -> io::Result<()> {
        children::end(std::slice::from_mut(&mut self.process), END).await
    }
}

/// Returns the number of containers if all of them are running.
fn all_running(state: &Value) -> Option<usize> {
    let containers = state["containers"].as_array()?;
    let run = containers.iter().all(|one| one["status"] == "Running");
    run.then_some(containers.len())
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
