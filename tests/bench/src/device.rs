//! A supervisor of the release layout, started with its own folders.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use held_port::HeldPort;
use serde_json::Value;
use tempfile::TempDir;
use tests::distribution;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The time limit of everything in the benchmark.
const DEADLINE: Duration = Duration::from_secs(120);
/// The pause between two checks of a condition that is not signalled: far shorter than the times that are measured with
/// it, and long enough to leave the processors free.
const LOOK_AGAIN: Duration = Duration::from_micros(500);
const LOOK_AT_SERVICES: Duration = Duration::from_millis(2);

/// The folders and flags of one device, which may be started repeatedly.
pub(crate) struct Device {
    /// The folder of its programs, plugins and policy.
    layout: PathBuf,
    folders: TempDir,
    pub(crate) address: SocketAddr,
    /// Reserves the port between two starts.
    _port: HeldPort,
    arguments: Vec<String>,
    process: Option<Child>,
    client: reqwest::Client,
    key: OnceLock<String>,
}

impl Device {
    pub(crate) fn new(arguments: &[&str]) -> Result<Self> {
        Self::from_layout(&distribution(), arguments)
    }

    /// A device of another layout than that of this version.
    pub(crate) fn from_layout(layout: &Path, arguments: &[&str]) -> Result<Self> {
        let folders = tempfile::tempdir()?;
        std::fs::create_dir(folders.path().join("host"))?;
        let port = HeldPort::new()?;
        Ok(Device {
            layout: layout.to_owned(),
            folders,
            address: port.address(),
            _port: port,
            arguments: arguments
                .iter()
                .map(|argument| (*argument).to_owned())
                .collect(),
            process: None,
            client: tests::client(),
            key: OnceLock::new(),
        })
    }

    /// Adds a flag before the start.
    pub(crate) fn argument(&mut self, argument: impl Into<String>) {
        self.arguments.push(argument.into());
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folders.path().join("state")
    }

    /// Starts the device and returns how long the first 200 on `/ping` took.
    pub(crate) async fn start(&mut self) -> Result<Duration> {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.folders.path().join("log"))?;
        let begin = Instant::now();
        let process = Command::new(self.layout.join("bin/supervisor"))
            .args(["run", "--listen", &self.address.to_string()])
            .args(["--host-actions", "rehearse"])
            .arg("--state-dir")
            .arg(self.state())
            .arg("--host-root")
            .arg(self.folders.path().join("host"))
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("failed to start the supervisor")?;
        self.process = Some(process);
        while !self.answers_ping().await {
            self.must_run()?;
            if begin.elapsed() > DEADLINE {
                bail!("the supervisor does not answer; its log:\n{}", self.log());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(begin.elapsed())
    }

    pub(crate) fn pid(&self) -> Result<u32> {
        Ok(self
            .process
            .as_ref()
            .context("the supervisor is not started")?
            .id())
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folders.path().join("log")).unwrap_or_default()
    }

    /// Sends SIGTERM, and waits for the end.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        let pid = i32::try_from(process.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        }
        let begin = Instant::now();
        while process.try_wait()?.is_none() {
            if begin.elapsed() > DEADLINE {
                bail!("the supervisor does not end; its log:\n{}", self.log());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Returns the device's key, read only once: the program that prints it must not run during a measurement.
    pub(crate) fn key(&self) -> Result<&str> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let key = self.ask_for_key()?;
        Ok(self.key.get_or_init(|| key))
    }

    fn ask_for_key(&self) -> Result<String> {
        let output = Command::new(self.layout.join("bin/supervisor"))
            .args(["api-key", "show", "--state-dir"])
            .arg(self.state())
            .output()?;
        if !output.status.success() {
            bail!("no API key: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub(crate) async fn set_target(&self, target: &Value) -> Result<()> {
        let url = format!("http://{}/v2/local/target-state", self.address);
        let answer = self
            .client
            .post(url)
            .bearer_auth(self.key()?)
            .json(target)
            .send()
            .await?;
        if !answer.status().is_success() {
            bail!("the target was refused: {}", answer.text().await?);
        }
        Ok(())
    }

    /// Waits until this many services run, and returns the status.
    pub(crate) async fn until_running(&self, services: usize) -> Result<Value> {
        let url = format!("http://{}/v2/state/status", self.address);
        let key = self.key()?;
        let begin = Instant::now();
        loop {
            let status: Value = self
                .client
                .get(&url)
                .bearer_auth(key)
                .send()
                .await?
                .json()
                .await?;
            let containers = status["containers"]
                .as_array()
                .map_or(&[][..], Vec::as_slice);
            let running = containers
                .iter()
                .filter(|container| container["status"] == "Running")
                .count();
            if running == services && containers.len() == services {
                return Ok(status);
            }
            if begin.elapsed() > DEADLINE {
                bail!("{services} services do not run: {status}\n{}", self.log());
            }
            tokio::time::sleep(LOOK_AT_SERVICES).await;
        }
    }

    /// Waits until there is no service, and the target is applied.
    pub(crate) async fn until_settled(&self) -> Result<()> {
        while self.until_running(0).await?["appState"] != "applied" {
            tokio::time::sleep(LOOK_AT_SERVICES).await;
        }
        Ok(())
    }

    /// Returns the process that runs its plugins; `None` for a version that runs them in the supervisor's own.
    pub(crate) fn plugin_worker(&self) -> Result<Option<u32>> {
        for pid in tests::children_of(i32::try_from(self.pid()?)?) {
            let command = std::fs::read(format!("/proc/{pid}/cmdline"))?;
            if command.split(|byte| *byte == 0).nth(1) == Some(b"plugins") {
                return Ok(Some(u32::try_from(pid)?));
            }
        }
        Ok(None)
    }

    /// Waits until its plugins are loaded: after the very first start `/ping` answers before they are compiled.
    pub(crate) async fn until_plugins_answer(&self) -> Result<()> {
        self.until_answers("/v2/device/name").await
    }

    /// Waits until the route of a plugin answers with a success.
    pub(crate) async fn until_answers(&self, path: &str) -> Result<()> {
        let url = format!("http://{}{path}?apikey={}", self.address, self.key()?);
        let begin = Instant::now();
        while !self.client.get(&url).send().await?.status().is_success() {
            if begin.elapsed() > DEADLINE {
                bail!("{path} does not answer; the log:\n{}", self.log());
            }
            tokio::time::sleep(LOOK_AT_SERVICES).await;
        }
        Ok(())
    }

    /// Removes its services, and stops it.
    pub(crate) async fn clean_up(mut self) -> Result<()> {
        self.set_target(&empty_target()).await?;
        self.until_running(0).await?;
        self.stop().await
    }

    fn must_run(&mut self) -> Result<()> {
        if let Some(process) = &mut self.process
            && let Some(status) = process.try_wait()?
        {
            bail!("the supervisor ended ({status}); its log:\n{}", self.log());
        }
        Ok(())
    }

    async fn answers_ping(&self) -> bool {
        ping(self.address).await.unwrap_or(false)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended by itself; services of a failed run are ended by their folder's name.
            let _ = process.kill();
            let _ = process.wait();
        }
        for pid in tests::services_of(&self.state()) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Returns the target state without any app.
pub(crate) fn empty_target() -> Value {
    serde_json::json!({ "local": { "name": "bench", "config": {}, "apps": {} } })
}

/// Returns a target of one app, with services as `(name, image, further fields)`.
pub(crate) fn target(services: &[(&str, &str, Value)]) -> Value {
    let mut entries = serde_json::Map::new();
    for (id, (name, image, fields)) in (1_u64..).zip(services) {
        let mut entry = serde_json::json!({
            "serviceName": name,
            "imageId": id,
            "image": image,
            "running": true,
            "environment": {},
            "labels": {},
            "stop_grace_period": "1s",
        });
        if let (Some(entry), Some(fields)) = (entry.as_object_mut(), fields.as_object()) {
            entry.extend(fields.clone());
        }
        entries.insert(id.to_string(), entry);
    }
    serde_json::json!({ "local": { "name": "bench", "config": {}, "apps": { "1": {
        "name": "bench",
        "commit": "bench",
        "releaseId": "1",
        "services": entries,
        "volumes": {},
        "networks": {},
    } } } })
}

/// Returns the reference of a component file.
pub(crate) fn file_image(component: &Path) -> String {
    format!("file:{}", component.display())
}

async fn ping(address: SocketAddr) -> std::io::Result<bool> {
    let mut connection = TcpStream::connect(address).await?;
    connection
        .write_all(b"GET /ping HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await?;
    let mut head = [0; 12];
    connection.read_exact(&mut head).await?;
    Ok(head.ends_with(b" 200"))
}
