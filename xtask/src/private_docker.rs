//! A Docker engine and an image registry for one run of the tests, separate from those of the
//! machine.
//!
//! [`PrivateDocker::start`] is called once by `cargo xtask test` (and by `cargo xtask
//! docker-for-tests`, for a developer's own runs). The engine has its own data, sockets,
//! containerd, bridge and addresses, and adds no firewall rules, unless the machine's own would cut
//! its containers off. It ends with its owner: when it is dropped, on Ctrl-C, or, after a kill,
//! when the next one starts.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use held_port::HeldPort;
use rustix::process::Signal;

use crate::interrupted::clean_up_when_interrupted;
use crate::{busybox, owned_folder, processes};

mod addresses;
mod clean_up;
mod packages;

use addresses::Addresses;
pub(crate) use packages::{NEEDED, install_packages_if_debian_root};

/// The prefix of our folders in the temporary folder.
const FOLDER_PREFIX: &str = "supervisor-docker-";
/// The time limit from the start of a program to its first answer.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit from SIGTERM to the end of a program; containers are gone by then.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// A running engine and registry. Dropping this value stops both and removes everything that they
/// left.
pub(crate) struct PrivateDocker {
    folder: PathBuf,
    registry: String,
    children: Vec<Child>,
}

impl PrivateDocker {
    /// Starts both and waits until they answer. The registry then contains `busybox:latest`.
    ///
    /// # Errors
    /// What is missing, if this machine cannot run them; the suites are skipped then.
    pub(crate) fn start() -> Result<Self> {
        packages::check()?;
        for folder in owned_folder::find_without_owner(FOLDER_PREFIX) {
            clean_up::clean_folder(&folder);
        }
        // In the temporary folder, because the path of a socket is limited to 107 bytes.
        let folder = owned_folder::create(FOLDER_PREFIX)
            .context("failed to create a folder for the private Docker engine")?;
        let mut docker = PrivateDocker {
            registry: HeldPort::new()?.keep().to_string(),
            folder,
            children: Vec::new(),
        };
        let folder = docker.folder.clone();
        clean_up_when_interrupted(move || clean_up::clean_folder(&folder));
        docker.start_engine()?;
        docker.start_registry()?;
        busybox::push(&docker.docker_uri(), &docker.registry)?;
        Ok(docker)
    }

    /// Returns the value of `SUPERVISOR_TEST_DOCKER`.
    pub(crate) fn docker_uri(&self) -> String {
        format!("unix://{}", self.folder.join("docker.sock").display())
    }

    /// Returns the value of `SUPERVISOR_TEST_REGISTRY`: `127.0.0.1:PORT`, plain HTTP.
    pub(crate) fn registry(&self) -> &str {
        &self.registry
    }

    fn start_engine(&mut self) -> Result<()> {
        let addresses = Addresses::take(&self.folder)?;
        let path = |name: &str| self.folder.join(name);
        // An empty configuration instead of the machine's own in /etc.
        fs::write(path("daemon.json"), "{}")?;
        let mut engine = Command::new("dockerd");
        engine
            .args(["--config-file".into(), path("daemon.json")])
            .args(["--data-root".into(), path("data")])
            .args(["--exec-root".into(), path("exec")])
            .args(["--pidfile".into(), path("docker.pid")])
            .args(["--host", &self.docker_uri()])
            .args(["--bridge", &addresses.bridge])
            .args(["--default-address-pool", &addresses.pool()])
            // The rules of two engines on one machine conflict. Without rules, published ports go
            // through docker's proxy, which is sufficient for tests.
            .args(["--iptables=false", "--ip6tables=false", "--ip-masq=false"])
            .args(["--ip-forward=false", "--userland-proxy=true"])
            .args(["--exec-opt", "native.cgroupdriver=cgroupfs"]);
        self.spawn(engine, "dockerd")?;
        let socket = self.folder.join("docker.sock");
        self.wait_until("dockerd", || {
            let mut stream = UnixStream::connect(&socket).ok()?;
            answers(&mut stream, "/_ping")
        })
    }

    fn start_registry(&mut self) -> Result<()> {
        let configuration = format!(
            "version: 0.1\n\
             log: {{ level: warn, accesslog: {{ disabled: true }} }}\n\
             storage: {{ filesystem: {{ rootdirectory: {} }}, delete: {{ enabled: true }} }}\n\
             http: {{ addr: \"{}\" }}\n",
            self.folder.join("registry").display(),
            self.registry
        );
        let file = self.folder.join("registry.yml");
        fs::write(&file, configuration)?;
        let mut registry = Command::new("docker-registry");
        registry.arg("serve").arg(file);
        self.spawn(registry, "docker-registry")?;
        let address = self.registry.clone();
        self.wait_until("docker-registry", || {
            let mut stream = std::net::TcpStream::connect(&address).ok()?;
            answers(&mut stream, "/v2/")
        })
    }

    /// Starts a program detached from the terminal: Ctrl-C reaches only us, and we stop the program
    /// properly.
    fn spawn(&mut self, mut command: Command, name: &str) -> Result<()> {
        let log = fs::File::create(self.log(name))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .with_context(|| format!("failed to start `{name}`"))?;
        let pid_file = self.folder.join(format!("{name}.started"));
        fs::write(pid_file, child.id().to_string())?;
        self.children.push(child);
        Ok(())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    fn wait_until(&mut self, name: &str, answers: impl Fn() -> Option<()>) -> Result<()> {
        let log = self.log(name);
        let program = self.children.last_mut().context("no program was started")?;
        let is_ready = || answers().is_some();
        processes::wait_until(name, program, &log, START_TIMEOUT, is_ready)
    }
}

impl Drop for PrivateDocker {
    fn drop(&mut self) {
        clean_up::remove_objects(&self.docker_uri());
        for child in self.children.iter_mut().rev() {
            if let Some(pid) = processes::pid(child.id()) {
                processes::end(pid, Signal::TERM, STOP_TIMEOUT);
            }
            // Reaps it, so that it no longer counts as running.
            let _ = child.wait();
        }
        clean_up::remove_traces(&self.folder);
    }
}

/// Checks whether an HTTP server on the stream answers 200.
pub(crate) fn answers(stream: &mut (impl Read + Write), path: &str) -> Option<()> {
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut start = [0; 12];
    stream.read_exact(&mut start).ok()?;
    start.ends_with(b" 200").then_some(())
}

/// Runs a program of the machine to its end, without output.
fn quietly(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to start `{program}`"))?;
    if !output.status.success() {
        bail!(
            "`{program} {}` failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `cargo xtask docker-for-tests`: stays in the foreground until Ctrl-C.
pub(crate) fn run_in_foreground() -> Result<()> {
    install_packages_if_debian_root()?;
    let docker = PrivateDocker::start()?;
    println!("export SUPERVISOR_TEST_DOCKER={}", docker.docker_uri());
    println!("export SUPERVISOR_TEST_REGISTRY={}", docker.registry());
    println!("# Ctrl-C stops both");
    loop {
        std::thread::park();
    }
}
