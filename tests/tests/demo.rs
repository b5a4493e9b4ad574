//! `cargo xtask run` for a user who has just cloned the repository: the printed lines are typed unchanged, the device
//! is observed, and in the end everything is removed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "also the helpers of a test fail with what they did not find"
)]

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::query_parameters::ListContainersOptionsBuilder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tests::{DEADLINE, client, repository, until};

/// The first start builds everything that is missing.
const START: Duration = Duration::from_secs(900);

/// One start of `cargo xtask run`, with its own temporary files and home.
struct Session {
    process: Child,
    /// Its output up to the end of its introduction.
    output: String,
    lines: Receiver<String>,
    home: PathBuf,
}

/// The folder of the sessions' temporary files, and of the user's home.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        for folder in ["tmp", "home"] {
            fs::create_dir(place.0.path().join(folder)).unwrap();
        }
        place
    }

    /// Starts a session, and waits until it has printed its introduction.
    fn start(&self, docker: Option<&str>, more: &[&str]) -> Session {
        let mut command = Command::new(env!("CARGO"));
        command
            .args([
                "xtask",
                "run",
                "--no-build",
                "--listen",
                "127.0.0.1:0",
                "--cloud",
                "127.0.0.1:0",
            ])
            .args(["--engine", if docker.is_some() { "docker" } else { "wasm" }])
            .args(more)
            .current_dir(repository())
            .env("TMPDIR", self.0.path().join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        // Cargo's variables for this test would cause build scripts to run again.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        if let Some(docker) = docker {
            command.env("DOCKER_HOST", docker);
        }
        let mut process = command.spawn().expect("cargo");
        let lines = lines_of(process.stdout.take().unwrap());
        let mut session = Session {
            process,
            output: String::new(),
            lines,
            home: self.0.path().join("home"),
        };
        session.until_introduced();
        session
    }

    /// Returns temporary files that sessions have left.
    fn left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.path().join("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Returns processes whose command line contains the sessions' folder.
    fn processes(&self) -> Vec<String> {
        let place = self.0.path().to_string_lossy().into_owned();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let commands = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        commands
            .map(|command| String::from_utf8_lossy(&command).replace('\0', " "))
            .filter(|command| command.contains(&place))
            .collect()
    }
}

fn lines_of(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Session {
    fn until_introduced(&mut self) {
        let deadline = Instant::now() + START;
        while !self.output.contains("Ctrl-C stops it all") {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("{error}; it said:\n{}", self.output));
            self.output = format!("{}{line}\n", self.output);
        }
    }

    /// Returns the lines to try.
    fn to_try(&self) -> Vec<&str> {
        let (_, after) = self
            .output
            .split_once("try, in another terminal:\n")
            .unwrap();
        let lines = after.lines().take_while(|line| line.starts_with("  "));
        lines.map(str::trim).collect()
    }

    /// Returns the value after a name in the introduction.
    fn fact(&self, name: &str) -> &str {
        let line = self.output.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no `{name}` in:\n{}", self.output))
            .trim()
    }

    fn uuid(&self) -> &str {
        self.fact("device").split(',').next().unwrap()
    }

    /// A shell in which the first two lines to try have been typed: the programs are found, and the user is signed in.
    fn shell(&self, line: &str) -> Command {
        let [export, login] = self.to_try()[..2] else {
            panic!("{}", self.output)
        };
        let mut shell = Command::new("sh");
        shell
            .arg("-ec")
            .arg(format!("{export}\n[ -d ~/.config ] || {login} >&2\n{line}"))
            .env("HOME", &self.home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("FLEET_URL")
            .env_remove("FLEET_TOKEN")
            .stdin(Stdio::null());
        shell
    }

    /// Types a line, and returns its output.
    fn typed(&self, line: &str) -> String {
        let output = self.shell(line).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the device runs this release.
    async fn until_runs(&self, version: &str) {
        until("the device to run the release", || async {
            let devices: Value = serde_json::from_str(&self.typed("fleet devices --json")).unwrap();
            if devices[0]["running_version"] == version {
                Ok(())
            } else {
                Err(devices)
            }
        })
        .await;
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Sends Ctrl-C, and returns the output from then on.
    fn stop(mut self) -> String {
        self.signal(Signal::INT);
        let deadline = Instant::now() + DEADLINE;
        let mut output = String::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => output = format!("{output}{line}\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("{error}: {output}"),
            }
        }
        assert!(self.process.wait().unwrap().success(), "{output}");
        output
    }
}

impl Drop for Session {
    /// Ends it after a test that failed.
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            self.signal(Signal::TERM);
            let _ = self.process.wait();
        }
    }
}

/// A log that is being followed.
struct LogFollower {
    process: Child,
    lines: Receiver<String>,
}

impl LogFollower {
    fn begin(session: &Session, line: &str) -> Self {
        let mut shell = session.shell(&format!("exec {line}"));
        let mut process = shell.stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(process.stdout.take().unwrap());
        LogFollower { process, lines }
    }

    fn until_says(&self, words: &str) {
        let deadline = Instant::now() + DEADLINE;
        let mut last = String::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            last = line.unwrap_or_else(|error| panic!("{error}, and no `{words}`; last: {last}"));
            if last.contains(words) {
                return;
            }
        }
    }
}

impl Drop for LogFollower {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn has_registry() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join("docker-registry").is_file());
    if !found {
        println!("SKIPPED: docker-registry is not installed");
    }
    found
}

/// Returns the names of the device's containers.
async fn containers(docker: &str, uuid: &str) -> Vec<String> {
    let engine = Docker::connect_with_host(docker).unwrap();
    let engine = engine.negotiate_version().await.unwrap();
    let all = ListContainersOptionsBuilder::new().all(true).build();
    let found = engine.list_containers(Some(all)).await.unwrap();
    let labels = |labels: &HashMap<String, String>| labels.values().any(|value| value == uuid);
    let ours = found
        .into_iter()
        .filter(|one| one.labels.as_ref().is_some_and(labels));
    ours.map(|one| format!("{:?}", one.names)).collect()
}

/// Returns images with this registry in their names.
async fn images(docker: &str, registry: &str) -> Vec<String> {
    let engine = Docker::connect_with_host(docker).unwrap();
    let engine = engine.negotiate_version().await.unwrap();
    let found = engine
        .list_images(None::<bollard::query_parameters::ListImagesOptions>)
        .await
        .unwrap();
    let names = found.into_iter().flat_map(|image| image.repo_digests);
    names.filter(|name| name.starts_with(registry)).collect()
}

/// Runs from the first start to the last, on one engine.
async fn story(docker: Option<String>) {
    let docker = docker.as_deref();
    let place = Place::new();
    let session = place.start(docker, &[]);
    let [_, _, devices, blink, deploy, show, pin, track, follow] = session.to_try()[..] else {
        panic!("{}", session.output)
    };
    let uuid = session.uuid().to_owned();

    // The device has started by itself, with the first release.
    assert!(session.typed(devices).contains(&uuid[..7]), "{devices}");
    session.until_runs("1.0.0").await;
    assert!(session.typed(blink).contains("blinks"));
    let log = LogFollower::begin(&session, follow);
    log.until_says("the server says: Hello!");

    // It changes to a second release, back, and again to the second, as the log shows.
    session.typed(deploy);
    session.until_runs("2.0.0").await;
    log.until_says("the server says: Good day!");
    assert!(session.typed(show).contains(&uuid), "{show}");
    session.typed(pin);
    session.until_runs("1.0.0").await;
    log.until_says("the server says: Hello!");
    session.typed(track);
    session.until_runs("2.0.0").await;

    // The dashboard is at the printed address, and asks users who are not signed in for a password.
    let page = client()
        .get(session.fact("dashboard"))
        .send()
        .await
        .unwrap();
    assert_eq!(page.status(), 200);
    let page = page.text().await.unwrap();
    assert!(page.contains("password"), "{page}");

    // Ctrl-C removes everything.
    let registry = session.fact("registry").to_owned();
    drop(log);
    let output = session.stop();
    assert!(output.contains("everything was removed"), "{output}");
    assert_eq!(place.processes(), Vec::<String>::new());
    assert_eq!(place.left(), Vec::<PathBuf>::new());
    if let Some(docker) = docker {
        assert_eq!(containers(docker, &uuid).await, Vec::<String>::new());
        assert_eq!(images(docker, &registry).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_new_user_sees_the_whole_story_on_wasm() {
    if has_registry() {
        story(None).await;
    }
}

#[tokio::test]
async fn a_new_user_sees_the_whole_story_on_docker() {
    let Ok(docker) = std::env::var("SUPERVISOR_TEST_DOCKER") else {
        println!("SKIPPED: no Docker engine for tests (SUPERVISOR_TEST_DOCKER is not set)");
        return;
    };
    if has_registry() {
        story(Some(docker)).await;
    }
}

#[tokio::test]
async fn images_are_kept_in_the_registry_that_is_named() {
    let Ok(registry) = std::env::var("SUPERVISOR_TEST_REGISTRY") else {
        println!("SKIPPED: SUPERVISOR_TEST_REGISTRY is not set");
        return;
    };
    if !has_registry() {
        return;
    }
    let place = Place::new();
    let session = place.start(None, &["--registry", &registry]);
    // There is no other registry from which the device could have its release.
    assert_eq!(session.fact("registry"), registry);
    session.until_runs("1.0.0").await;
    session.stop();
    assert_eq!(place.processes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_session_that_is_kept_goes_on_and_one_that_was_killed_is_cleared_away() {
    if !has_registry() {
        return;
    }
    let place = Place::new();
    let kept = place.0.path().join("kept");
    let more = ["--state-dir", kept.to_str().unwrap()];
    let session = place.start(None, &more);
    let uuid = session.uuid().to_owned();
    session.until_runs("1.0.0").await;
    session.typed("fleet tag set place cellar --device $(fleet devices --json | sed -n 's/.*\"uuid\": \"\\(.*\\)\",/\\1/p')");
    let output = session.stop();
    assert!(output.contains("everything is kept"), "{output}");
    assert_eq!(place.processes(), Vec::<String>::new());
    fs::remove_dir_all(place.0.path().join("home/.config")).unwrap();

    // The same cloud with the same device, which runs the same release; then everything is killed at once.
    let session = place.start(None, &more);
    assert_eq!(session.uuid(), uuid);
    let devices: Value = serde_json::from_str(&session.typed("fleet devices --json")).unwrap();
    assert_eq!(devices.as_array().unwrap().len(), 1, "{devices}");
    let tags = session.typed(&format!("fleet tags --device {uuid}"));
    assert!(tags.contains("cellar"), "{tags}");
    session.until_runs("1.0.0").await;
    session.signal(Signal::KILL);
    drop(session);
    assert_ne!(place.processes(), Vec::<String>::new());
    fs::remove_dir_all(place.0.path().join("home/.config")).unwrap();

    // The next session replaces it.
    let session = place.start(None, &more);
    assert!(session.output.contains("was killed: removing what it left"));
    assert_eq!(session.uuid(), uuid);
    session.until_runs("1.0.0").await;
    session.stop();
    assert_eq!(place.processes(), Vec::<String>::new());
    assert_eq!(place.left(), Vec::<PathBuf>::new());
    assert!(kept.join("cloud.sqlite").exists());
}
