//! `cargo xtask run`: one device in local mode, with a sample target state of two services that talk to
//! each other. Ctrl-C stops it, and takes its services and its temporary state with it.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use anyhow::{Context, Result, bail};
use bollard::Docker;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::layout::{self, Layout};
use crate::samples::Samples;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Optimise and strip the supervisor
    #[arg(long)]
    release: bool,
    /// Where the API listens
    #[arg(long, default_value = "127.0.0.1:48484", value_name = "ADDR:PORT")]
    listen: String,
    /// Keep state here rather than in a temporary folder
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Where services run: Docker if its socket answers, else wasm
    #[arg(long, default_value = "auto", value_parser = ["auto", "docker", "wasm"])]
    engine: String,
    /// Start with no services
    #[arg(long)]
    no_sample: bool,
    /// Keep the state folder when stopped
    #[arg(long)]
    keep: bool,
}

/// How long the start may take: a first start compiles the plugins.
const START: Duration = Duration::from_secs(60);
/// How long services may take to go; with the rest it stays below the 5 s that Ctrl-C may take.
const SERVICES_GONE: Duration = Duration::from_millis(3000);
/// How long the supervisor may take to end.
const END: Duration = Duration::from_millis(1200);
/// Between two looks at a condition that nothing announces.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let layout = layout::build(&layout::Arguments {
        release: arguments.release,
    })?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(session(arguments, layout))
}

async fn session(arguments: Arguments, layout: Layout) -> Result<()> {
    let (engine, why) = choose_engine(&arguments.engine).await?;
    println!("engine: {engine} ({why})");

    let temporary = tempfile::Builder::new().prefix("supervisor-").tempdir()?;
    let owner = short_name(temporary.path());
    let state = match &arguments.state_dir {
        Some(folder) => std::path::absolute(folder)?,
        None => temporary.path().join("state"),
    };
    let host_root = temporary.path().join("host");
    describe_board(&host_root)?;

    let samples = match (arguments.no_sample, engine) {
        (true, _) => None,
        (false, "docker") => Some(Samples::as_images(connect()?, &owner).await?),
        (false, _) => Some(Samples::as_components()?),
    };

    let mut device = Device::start(&layout, &arguments.listen, engine, &state, &host_root)?;
    let outcome = device.serve(&layout, &state, samples.as_ref()).await;

    println!("\nstopping the device, its services and its sample images");
    device.stop().await;
    kill_services_left_in(&state);
    if let Some(samples) = samples {
        samples.remove().await;
    }
    if arguments.keep && arguments.state_dir.is_none() {
        println!(
            "state is kept in {}",
            temporary.keep().join("state").display()
        );
    }
    outcome
}

/// What a device's image says of its board, for the scratch host root.
fn describe_board(host_root: &Path) -> Result<()> {
    let boot = host_root.join("mnt/boot");
    fs::create_dir_all(&boot)?;
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        other => other,
    };
    let board = json!({ "slug": format!("generic-{arch}"), "arch": arch });
    Ok(fs::write(boot.join("device-type.json"), board.to_string())?)
}

/// Which engine the device gets, and why.
async fn choose_engine(wanted: &str) -> Result<(&'static str, String)> {
    let answer = match connect() {
        Ok(docker) => docker.ping().await.map_err(anyhow::Error::from),
        Err(error) => Err(error),
    };
    match (wanted, answer) {
        ("wasm", _) => Ok(("wasm", "asked for with --engine".into())),
        ("docker", Ok(_)) => Ok(("docker", "asked for with --engine".into())),
        ("docker", Err(error)) => Err(error.context("the Docker engine does not answer")),
        (_, Ok(_)) => Ok(("docker", "its socket answers".into())),
        (_, Err(_)) => Ok(("wasm", "no Docker socket answers".into())),
    }
}

fn connect() -> Result<Docker> {
    Ok(Docker::connect_with_local_defaults()?)
}

/// The random end of a temporary folder's name, in the characters that an image name may have.
fn short_name(folder: &Path) -> String {
    let name = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The running supervisor.
struct Device {
    process: Child,
    base: String,
    client: reqwest::Client,
    /// Known once the device answers.
    key: String,
}

impl Device {
    fn start(
        layout: &Layout,
        listen: &str,
        engine: &str,
        state: &Path,
        host_root: &Path,
    ) -> Result<Self> {
        let process = Command::new(layout.supervisor())
            .args(["run", "--listen", listen, "--engine", engine])
            .arg("--state-dir")
            .arg(state)
            .arg("--host-root")
            .arg(host_root)
            // Ctrl-C in a terminal reaches the whole group; the device is stopped by us, in order.
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .context("failed to start the supervisor")?;
        Ok(Device {
            process,
            base: format!("http://{listen}"),
            client: reqwest::Client::new(),
            key: String::new(),
        })
    }

    async fn serve(
        &mut self,
        layout: &Layout,
        state: &Path,
        samples: Option<&Samples>,
    ) -> Result<()> {
        self.until_it_answers().await?;
        self.key = api_key(layout, state)?;
        if let Some(samples) = samples {
            self.set_target(&samples.target()).await?;
        }
        self.introduce(state);
        let mut terminate =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        loop {
            tokio::select! {
                interrupted = tokio::signal::ctrl_c() => return Ok(interrupted?),
                _ = terminate.recv() => return Ok(()),
                () = tokio::time::sleep(Duration::from_secs(1)) => self.must_run()?,
            }
        }
    }

    async fn until_it_answers(&mut self) -> Result<()> {
        let deadline = Instant::now() + START;
        loop {
            self.must_run()?;
            if let Ok(answer) = self.client.get(format!("{}/ping", self.base)).send().await
                && answer.status().is_success()
            {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "the supervisor did not answer on {} within {START:?}",
                    self.base
                );
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    fn must_run(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            Some(status) => bail!("the supervisor ended by itself ({status}); its log is above"),
            None => Ok(()),
        }
    }

    async fn set_target(&self, target: &Value) -> Result<()> {
        let answer = self
            .client
            .post(format!(
                "{}/v2/local/target-state?apikey={}",
                self.base, self.key
            ))
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

    fn introduce(&self, state: &Path) {
        let (base, key) = (&self.base, &self.key);
        println!(
            "\nthe device answers on {base}\n\
             API key: {key}\n\
             state:   {}\n\n\
             try:\n\
             \x20 curl '{base}/v2/applications/state?apikey={key}'\n\
             \x20 curl -N '{base}/v2/local/logs?apikey={key}'\n\
             \x20 curl '{base}/v2/local/device-info?apikey={key}'\n\n\
             Ctrl-C stops it",
            state.display(),
        );
    }

    /// Empties the target so that the services go, then ends the supervisor, which alone would leave
    /// them running.
    async fn stop(&mut self) {
        let empty = json!({ "local": { "name": "sample", "config": {}, "apps": {} } });
        if matches!(self.process.try_wait(), Ok(None)) && self.set_target(&empty).await.is_ok() {
            let gone = tokio::time::timeout(SERVICES_GONE, self.until_services_are_gone()).await;
            if gone.is_err() {
                eprintln!("warning: not all services stopped in time");
            }
        }
        if let Err(error) = self.end_process().await {
            eprintln!("warning: failed to stop the supervisor: {error}");
        }
    }

    async fn until_services_are_gone(&self) {
        let url = format!("{}/v2/state/status?apikey={}", self.base, self.key);
        loop {
            if let Ok(answer) = self.client.get(&url).send().await
                && let Ok(state) = answer.json::<Value>().await
                && state["containers"].as_array().is_some_and(Vec::is_empty)
                && state["appState"] == "applied"
            {
                return;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn end_process(&mut self) -> io::Result<()> {
        if let Some(pid) = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw)
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

/// Wasm services outlive their supervisor by design. One that did not stop in time must not outlive us.
fn kill_services_left_in(state: &Path) {
    let state = state.to_string_lossy();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command);
        let mut words = command.split('\0').skip(1);
        let is_service = words.next() == Some("wasm-service");
        let is_ours = words.any(|word| word.starts_with(&*state));
        let pid = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if is_service
            && is_ours
            && let Some(pid) = pid.and_then(Pid::from_raw)
        {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn api_key(layout: &Layout, state: &Path) -> Result<String> {
    let output = Command::new(layout.supervisor())
        .args(["api-key", "show", "--state-dir"])
        .arg(state)
        .output()
        .context("failed to ask for the API key")?;
    if !output.status.success() {
        bail!(
            "failed to read the API key: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
