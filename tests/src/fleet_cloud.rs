//! The real fleet cloud, for tests of a device with it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::client::client;
use crate::layout::distribution;

const EMAIL: &str = "ann@acme.example";
const PASSWORD: &str = "correct horse battery";

/// A running fleet cloud with its own database, and its administrator. It ends when it is dropped.
pub struct FleetCloud {
    child: Child,
    url: String,
    client: reqwest::Client,
    token: String,
    registry: String,
    folder: tempfile::TempDir,
}

impl FleetCloud {
    /// Starts a cloud whose images are in this registry, which has no authentication.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(registry: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (child, log) = spawn(&folder, registry, "127.0.0.1:0");
        // From here on the process ends with this value.
        let mut cloud = FleetCloud {
            child,
            url: String::new(),
            client: client(),
            token: String::new(),
            registry: registry.to_owned(),
            folder,
        };
        cloud.url = listening(log);
        let login = cloud.client.post(format!("{}/login_", cloud.url));
        let login = login.json(&json!({ "username": EMAIL, "password": PASSWORD }));
        let answer = login.send().await.expect("an answer");
        cloud.token = answer.text().await.expect("a token");
        cloud
    }

    /// Ends it like a system does; returns how long that took.
    ///
    /// # Panics
    /// If it does not end.
    pub fn terminate(&mut self) -> Duration {
        let started = Instant::now();
        let pid = i32::try_from(self.child.id()).expect("a process number");
        let pid = rustix::process::Pid::from_raw(pid).expect("a process number");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}");
        started.elapsed()
    }

    /// Starts it again after its end, on the same database and at the same address.
    pub fn start_again(&mut self) {
        let address = self.url.strip_prefix("http://").expect("an address");
        let (child, log) = spawn(&self.folder, &self.registry, address);
        self.child = child;
        listening(log);
    }

    /// A request as the administrator.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(&self.token)
    }

    /// Sends a request, and returns its answer.
    ///
    /// # Panics
    /// If it does not succeed.
    pub async fn answer(&self, request: RequestBuilder) -> Value {
        let answer = request.send().await.expect("an answer");
        let (status, path) = (answer.status(), answer.url().path().to_owned());
        let text = answer.text().await.expect("a body");
        assert!(status.is_success(), "{path}: {status}: {text}");
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// Returns the rows of a GET of the data API.
    ///
    /// # Panics
    /// If it does not succeed.
    pub async fn rows(&self, path: &str) -> Vec<Value> {
        let answer = self.answer(self.request(Method::GET, path)).await;
        answer["d"].as_array().expect("rows").clone()
    }

    /// Creates a fleet for this type of board; returns its number.
    ///
    /// # Panics
    /// If the cloud refuses it.
    pub async fn fleet(&self, name: &str, board: &str) -> i64 {
        let path = format!("/v7/device_type(slug='{board}')?$select=id");
        let board = self.rows(&path).await[0]["id"].clone();
        let fleet = json!({ "app_name": name, "organization": 1, "is_for__device_type": board });
        let request = self.request(Method::POST, "/v7/application").json(&fleet);
        self.answer(request).await["id"].as_i64().expect("an id")
    }

    /// The config.json of a new device for a fleet.
    ///
    /// # Panics
    /// If the cloud returned no key.
    pub async fn config_json(&self, fleet: i64, board: &str) -> Value {
        let path = format!("/api-key/application/{fleet}/provisioning");
        let key = self
            .answer(self.request(Method::POST, &path).json(&json!({})))
            .await;
        json!({
            "applicationId": fleet, "deviceType": board, "apiEndpoint": self.url, "apiKey": key,
        })
    }

    /// The command-line program as the administrator, in a folder.
    #[must_use]
    pub fn command(&self, folder: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(distribution().join("bin/fleet"));
        command
            .args(words)
            .current_dir(folder)
            .env("FLEET_URL", &self.url)
            .env("FLEET_TOKEN", &self.token)
            .stdin(Stdio::null());
        command
    }

    /// Runs the command-line program as the administrator, in a folder.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn command_line(&self, folder: &Path, words: &[&str]) -> Output {
        let output = self.command(folder, words).output();
        let output = output.expect("`bin/fleet` of the layout");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "fleet {words:?}: {stderr}");
        output
    }
}

fn spawn(
    folder: &tempfile::TempDir,
    registry: &str,
    listen: &str,
) -> (Child, BufReader<ChildStderr>) {
    let database = format!("sqlite:{}", folder.path().join("cloud.sqlite").display());
    let mut child = Command::new(distribution().join("bin/fleet-cloud"))
        .args(["serve", "--listen", listen, "--registry", registry])
        .args(["--database", &database])
        .args(["--admin-email", EMAIL, "--admin-password", PASSWORD])
        .env("RUST_LOG", "info")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("`bin/fleet-cloud` of the layout, which `cargo xtask build` makes");
    let log = child.stderr.take().expect("its log");
    (child, BufReader::new(log))
}

/// Waits until it listens; returns the address.
fn listening(mut log: BufReader<ChildStderr>) -> String {
    let mut line = String::new();
    let url = loop {
        line.clear();
        let read = log.read_line(&mut line).expect("a line");
        assert!(read > 0, "the cloud ended by itself");
        if let Some((_, url)) = line.trim().split_once("listening at ") {
            break url.to_owned();
        }
    };
    // The output has to be read to its end, or the program blocks.
    std::thread::spawn(move || {
        let _ = log.read_to_end(&mut Vec::new());
    });
    url
}

impl Drop for FleetCloud {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
