//! A supervisor under test.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use held_port::HeldPort;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::answer::Answer;
use crate::client::client;
use crate::compiled;
use crate::description::Description;
use crate::layout::distribution;
use crate::processes::{kill, kill_services_of};
use crate::until::{DEADLINE, until};

/// How long to wait for the description before an answer goes unchecked.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(2);

/// How a [`Supervisor`] is started.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    arguments: Vec<String>,
    listen: Option<String>,
    configuration: String,
    program: Option<PathBuf>,
    environment: Vec<(String, String)>,
    config_json: Option<Value>,
    host_files: Vec<(String, String)>,
    /// Whether starting does not wait for the plugins.
    without_plugins: bool,
    /// Whether it leads a process group, as a program does that a shell starts.
    leads_group: bool,
}

impl Builder {
    /// Starts another program than the layout's.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Adds an argument of `supervisor run`.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Loads the plugins in `plugins` of this folder, pinned or not, with the `policy.toml` next to it.
    #[must_use]
    pub fn plugins_of(self, folder: &Path) -> Self {
        let path = |name: &str| folder.join(name).display().to_string();
        self.argument("--plugin-dir")
            .argument(path("plugins"))
            .argument("--policy")
            .argument(path("policy.toml"))
            .argument("--allow-unpinned")
    }

    /// Sets where it listens, as for `--listen`; the default is a free port, with keys.
    #[must_use]
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = Some(address.into());
        self
    }

    /// Sets the text of the configuration file.
    #[must_use]
    pub fn configuration(mut self, toml: impl Into<String>) -> Self {
        self.configuration = toml.into();
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn environment(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the device's config.json.
    #[must_use]
    pub fn config_json(mut self, content: Value) -> Self {
        self.config_json = Some(content);
        self
    }

    /// Adds a file of the host, below its root.
    #[must_use]
    pub fn host_file(mut self, path: impl Into<String>, content: impl Into<String>) -> Self {
        self.host_files.push((path.into(), content.into()));
        self
    }

    /// Does not wait for the plugins at a start.
    #[must_use]
    pub fn before_its_plugins(mut self) -> Self {
        self.without_plugins = true;
        self
    }

    /// Starts it in a process group of its own, as a shell in a terminal does; for [`Supervisor::signal_group`].
    #[must_use]
    pub fn in_its_own_group(mut self) -> Self {
        self.leads_group = true;
        self
    }

    /// Starts it, and waits until it answers and its plugins are loaded.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(self) -> Supervisor {
        let folders = tempfile::tempdir().expect("a temporary folder");
        let host_root = folders.path().join("host");
        fs::create_dir_all(host_root.join("mnt/boot")).expect("a host root");
        if let Some(content) = &self.config_json {
            let path = host_root.join("mnt/boot/config.json");
            fs::write(path, content.to_string()).expect("a config.json");
        }
        for (path, content) in &self.host_files {
            let path = host_root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a host folder");
            fs::write(path, content).expect("a host file");
        }
        let mut supervisor = Supervisor {
            state_dir: folders.path().join("state"),
            host_root,
            folders,
            builder: self,
            process: None,
            port: HeldPort::new().expect("a free port"),
            base: String::new(),
            key: String::new(),
            client: client(),
            description: OnceCell::new(),
        };
        compiled::bring(&supervisor.state_dir);
        supervisor.begin(&[]).await;
        supervisor
    }
}

/// A running supervisor. Dropping it kills it and its services, and removes its folders.
pub struct Supervisor {
    builder: Builder,
    folders: TempDir,
    state_dir: PathBuf,
    host_root: PathBuf,
    process: Option<Child>,
    /// The port where it listens, unless the builder sets an address.
    port: HeldPort,
    base: String,
    key: String,
    client: reqwest::Client,
    description: OnceCell<Description>,
}

/// How a run of the program ended.
#[derive(Debug)]
pub struct ProgramExit {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Supervisor {
    /// A supervisor with only the wasm engine, which every machine has.
    #[must_use]
    pub fn on_wasm() -> Builder {
        Builder::default().argument("--engine").argument("wasm")
    }

    /// A supervisor with the Docker engine that `cargo xtask test` started; returns `None`, and prints a line about it,
    /// if there is none.
    #[must_use]
    pub fn on_docker() -> Option<Builder> {
        let Ok(host) = std::env::var("SUPERVISOR_TEST_DOCKER") else {
            println!("SKIPPED: no Docker engine for tests (SUPERVISOR_TEST_DOCKER is not set)");
            return None;
        };
        Some(
            Builder::default()
                .argument("--engine")
                .argument("docker")
                .argument("--docker-host")
                .argument(host),
        )
    }

    /// `http://ADDRESS:PORT`.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    #[must_use]
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    #[must_use]
    pub fn host_root(&self) -> &Path {
        &self.host_root
    }

    #[must_use]
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Returns the process id.
    ///
    /// # Panics
    /// If it does not run.
    #[must_use]
    pub fn pid(&self) -> i32 {
        let process = self.process.as_ref().expect("the supervisor runs");
        i32::try_from(process.id()).expect("a process id")
    }

    /// Whether it has rehearsed shutting down; it logs when it stops listening for that.
    fn has_gone_down(&self) -> bool {
        self.log().contains("the API does not listen on")
    }

    /// Returns its log of this run and earlier ones.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Sends a `GET` with the device's key.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path)).await
    }

    /// Sends a `GET` with the device's key; returns the body as JSON.
    ///
    /// # Panics
    /// If the answer is not 200.
    pub async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// Sends a `POST` of JSON with the device's key.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request("POST", path).json(body)).await
    }

    /// Sets the local target.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn set_target(&self, target: &Value) -> Answer {
        let answer = self.post("/v2/local/target-state", target).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer
    }

    /// Waits until the target is reached, and returns `GET /v2/state/status`.
    pub async fn until_applied(&self) -> Value {
        until("the target to be reached", || async {
            let status = self.json("/v2/state/status").await;
            if status["appState"] == "applied" {
                Ok(status)
            } else {
                Err((status, self.log()))
            }
        })
        .await
    }

    /// A request with the device's key, to be extended and sent with [`Supervisor::send`].
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.request_without_key(method, path)
            .bearer_auth(&self.key)
    }

    /// A request without a key.
    ///
    /// # Panics
    /// If `method` is invalid.
    pub fn request_without_key(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().expect("a method");
        self.client
            .request(method, format!("{}{path}", self.base))
            .timeout(DEADLINE)
    }

    /// Sends a request, reads its answer to the end, and checks it against the API's description. While nobody listens
    /// it is sent again: a rehearsed shutdown does not last. So is a `GET` whose connection was ended by such a
    /// rehearsal.
    ///
    /// # Panics
    /// If there is no answer, or one that does not match the description.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let request = request.build().expect("a request");
        let method = request.method().to_string();
        let path = request.url().path().to_owned();
        let is_read = request.method() == "GET";
        let sent = until("somebody to listen", || async {
            // Bodies of tests are in memory.
            let request = request.try_clone().expect("a copy of the request");
            match self.client.execute(request).await {
                Err(error) if error.is_connect() => Err(error),
                // The connection was ended by a rehearsed shutdown.
                Err(error) if is_read && error.is_request() && self.has_gone_down() => Err(error),
                sent => Ok(sent),
            }
        })
        .await;
        let answer = match sent {
            Ok(response) => Answer::read(response).await,
            Err(error) => Err(error),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => panic!("no answer: {error:?}\n{}", self.log()),
        };
        if let Some(description) = self.description().await
            && let Err(wrong) = description.check(&method, &path, &answer)
        {
            panic!("{wrong}");
        }
        answer
    }

    /// Returns the description of this supervisor's API, as first requested in this run; `None` if the key has been
    /// replaced since, or plugins are not loaded yet.
    pub async fn description(&self) -> Option<&Description> {
        let document = || async {
            let request = self.request("GET", "/v3/openapi.json");
            let answer = request.timeout(DESCRIBED_WITHIN).send().await;
            let answer = answer.and_then(reqwest::Response::error_for_status);
            let document = answer.map_err(drop)?.json().await;
            document.map(Description::new).map_err(drop)
        };
        self.description.get_or_try_init(document).await.ok()
    }

    /// Sends SIGTERM, and waits for the end.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn terminate(&mut self) -> ExitStatus {
        let pid = Pid::from_raw(self.pid()).expect("a process id");
        kill_process(pid, Signal::TERM).expect("the supervisor runs");
        self.ended().await
    }

    /// Sends a signal to its whole process group, as a terminal does on Ctrl-C.
    ///
    /// # Panics
    /// If it does not run [in its own group](Builder::in_its_own_group).
    pub fn signal_group(&self, signal: Signal) {
        assert!(self.builder.leads_group, "the group is the test's own");
        let group = Pid::from_raw(self.pid()).expect("a process id");
        kill_process_group(group, signal).expect("the supervisor runs");
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn until_ended(&mut self) -> ExitStatus {
        self.ended().await
    }

    /// Sends SIGKILL, and waits for the end.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn kill(&mut self) {
        kill(self.pid());
        self.ended().await;
    }

    /// Starts it again with the same folders after [`Supervisor::terminate`] or [`Supervisor::kill`].
    pub async fn start_again(&mut self) {
        self.begin(&[]).await;
    }

    /// As [`Supervisor::start_again`], with these environment variables for this run.
    pub async fn start_again_with(&mut self, variables: &[(&str, &str)]) {
        self.begin(variables).await;
    }

    /// Waits until it has ended through SIGKILL.
    ///
    /// # Panics
    /// If it does not end, or ends in another way.
    pub async fn until_killed(&mut self) {
        let status = self.ended().await;
        assert_eq!(status.signal(), Some(9), "{status}\n{}", self.log());
    }

    /// Runs `supervisor run` a second time with the same flags; it is expected to end by itself.
    ///
    /// # Panics
    /// If the program cannot be run.
    #[must_use]
    pub fn run_second(&self) -> ProgramExit {
        finish(&mut self.command())
    }

    /// Runs a subcommand such as `api-key show` on this state folder.
    ///
    /// # Panics
    /// If the program cannot be run.
    #[must_use]
    pub fn subcommand(&self, words: &[&str]) -> ProgramExit {
        subcommand(words, &self.state_dir)
    }

    async fn begin(&mut self, variables: &[(&str, &str)]) {
        self.description = OnceCell::new();
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.log_file())
            .expect("a log file");
        let process = self
            .command()
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("failed to start {}: {error}", program().display()));
        self.process = Some(process);
        self.base = self.until_it_answers().await;
        let shown = self.subcommand(&["api-key", "show"]);
        assert!(shown.status.success(), "{shown:?}");
        self.key = shown.stdout.trim().to_owned();
        if !self.builder.without_plugins {
            self.until_plugins_are_loaded().await;
        }
    }

    /// Waits until no plugin is being loaded any more, or the supervisor has ended.
    async fn until_plugins_are_loaded(&mut self) {
        until("its plugins to be loaded", || async {
            let answer = self.request("GET", "/v3/plugins").send().await;
            let answer = match answer {
                Ok(answer) if answer.status() == 200 => answer.json::<Value>().await,
                _ => return Ok(()),
            };
            let plugins = answer.unwrap_or_default()["plugins"].take();
            let mut states = plugins.as_array().into_iter().flatten();
            match states.find(|plugin| plugin["state"] == "loading") {
                Some(plugin) => Err(plugin.clone()),
                None => Ok(()),
            }
        })
        .await;
    }

    fn command(&self) -> Command {
        let configuration = self.folders.path().join("supervisor.toml");
        fs::write(&configuration, &self.builder.configuration).expect("a configuration file");
        let mut command = Command::new(self.builder.program.clone().unwrap_or_else(program));
        command
            .args(["run", "--listen"])
            // The same port at each start: services received it when they were created.
            .arg(match &self.builder.listen {
                Some(address) => address.clone(),
                None => self.port.address().to_string(),
            })
            .arg("--state-dir")
            .arg(&self.state_dir)
            .arg("--host-root")
            .arg(&self.host_root)
            .arg("--config")
            .arg(configuration)
            .args(&self.builder.arguments)
            // The machine that runs the tests is not rebooted; a flag takes precedence over this.
            .env("SUPERVISOR_HOST_ACTIONS", "rehearse")
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .envs(self.builder.environment.iter().cloned());
        if self.builder.leads_group {
            command.process_group(0);
        }
        command
    }

    fn log_file(&self) -> PathBuf {
        self.folders.path().join("log")
    }

    async fn until_it_answers(&mut self) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(process) = &mut self.process
                && let Ok(Some(status)) = process.try_wait()
            {
                panic!("the supervisor ended ({status}):\n{}", self.log());
            }
            let written = fs::read_to_string(self.state_dir.join("address"));
            let written = written.ok().and_then(|addresses| {
                let address = addresses.lines().next()?;
                Some(format!("http://{address}"))
            });
            // If the state folder is not writable there is no such file; the port is that of the last run.
            let unwritable = || {
                let says_so = self.log().contains("cannot write into");
                (says_so && !self.base.is_empty()).then(|| self.base.clone())
            };
            if let Some(base) = written.or_else(unwritable) {
                let ping = self.client.get(format!("{base}/ping")).send().await;
                if ping.is_ok_and(|answer| answer.status() == 200) {
                    return base;
                }
            }
            assert!(
                Instant::now() < deadline,
                "no answer to /ping within {DEADLINE:?}:\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Removes leftovers on Docker: a container that is started again after the test would make the engine create its
    /// folders below the host root again.
    fn remove_containers(&self) {
        let mut arguments = self.builder.arguments.iter();
        if !arguments.any(|argument| argument == "--docker-host") {
            return;
        }
        let host = arguments.next().map(String::as_str).unwrap_or_default();
        let _ = Command::new(program())
            .args(["remove-services", "--engine", "docker", "--grace", "0"])
            .args(["--docker-host", host, "--state-dir"])
            .arg(&self.state_dir)
            .arg("--host-root")
            .arg(&self.host_root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }

    async fn ended(&mut self) -> ExitStatus {
        let mut process = self.process.take().expect("the supervisor runs");
        until("the supervisor to end", || {
            let ended = match process.try_wait() {
                Ok(Some(status)) => Ok(status),
                other => Err(format!("{other:?}")),
            };
            async { ended }
        })
        .await
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
        kill_services_of(&self.state_dir);
        self.remove_containers();
        compiled::keep(&self.state_dir);
        if std::thread::panicking() {
            eprintln!("the supervisor's log:\n{}", self.log());
        }
    }
}

/// Runs a subcommand on any state folder.
///
/// # Panics
/// If the program cannot be run.
#[must_use]
pub fn subcommand(words: &[&str], state_dir: &Path) -> ProgramExit {
    let mut command = Command::new(program());
    finish(command.args(words).arg("--state-dir").arg(state_dir))
}

fn program() -> PathBuf {
    distribution().join("bin/supervisor")
}

fn finish(command: &mut Command) -> ProgramExit {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("failed to run {}: {error}", program().display()));
    ProgramExit {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
