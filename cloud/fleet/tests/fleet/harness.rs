//! Starts the cloud, and runs `fleet` as a person or a program would.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);
pub(crate) const EMAIL: &str = "ann@acme.example";
pub(crate) const PASSWORD: &str = "correct horse battery";

/// A running cloud with its own database; it is stopped with the value.
pub(crate) struct Cloud {
    child: Child,
    pub(crate) url: String,
    database: String,
    _folder: tempfile::TempDir,
}

impl Cloud {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a cloud with open registration.
    pub(crate) fn start_open() -> Self {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "registration = \"open\"\n").expect("a configuration");
        Self::start_with(&["--config", file.path().to_str().expect("a path")])
    }

    /// Starts a cloud with additional arguments.
    pub(crate) fn start_with(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let database = format!("sqlite:{}", folder.path().join("cloud.sqlite").display());
        let mut child = Command::new(program())
            .args(["serve", "--listen", "127.0.0.1:0", "--database", &database])
            .args(["--admin-email", EMAIL, "--admin-password", PASSWORD])
            .args(more)
            .env("RUST_LOG", "info")
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("fleet-cloud");
        let mut log = BufReader::new(child.stderr.take().expect("its log"));
        let begun = Instant::now();
        let mut line = String::new();
        let url = loop {
            line.clear();
            let read = log.read_line(&mut line).expect("a line");
            assert!(read > 0, "the cloud ended: {:?}", child.wait());
            if let Some((_, address)) = line.trim().split_once("listening at ") {
                break address.to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "no start");
        };
        // The output must be read, or the program blocks.
        std::thread::spawn(move || {
            let mut rest = Vec::new();
            let _ = log.read_to_end(&mut rest);
            if std::env::var_os("SHOW_LOGS").is_some() {
                eprintln!("{}", String::from_utf8_lossy(&rest));
            }
        });
        Cloud {
            child,
            url,
            database,
            _folder: folder,
        }
    }

    /// The certificate that its registry must trust.
    pub(crate) fn registry_certificate(&self) -> String {
        let printed = Command::new(program())
            .args(["registry-certificate", "--database", &self.database])
            .output()
            .expect("fleet-cloud");
        assert!(printed.status.success(), "{printed:?}");
        String::from_utf8(printed.stdout).expect("PEM")
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The cloud's program, which is next to ours.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_fleet")).with_file_name("fleet-cloud");
    assert!(
        program.is_file(),
        "{} is not there: `cargo build -p fleet-cloud` first",
        program.display()
    );
    program
}

/// A person with their own machine.
pub(crate) struct Person {
    pub(crate) home: tempfile::TempDir,
    pub(crate) environment: Vec<(String, String)>,
}

impl Person {
    /// A person who has never signed in.
    pub(crate) fn new() -> Self {
        Person {
            home: tempfile::tempdir().expect("a folder"),
            environment: Vec::new(),
        }
    }

    /// A person who is signed in.
    pub(crate) fn signed_in(cloud: &Cloud) -> Self {
        let person = Self::new();
        person.done(&[
            "login",
            &cloud.url,
            "--email",
            EMAIL,
            "--password",
            PASSWORD,
        ]);
        person
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fleet"));
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.home.path())
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .current_dir(self.home.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CommandResult {
        let output = self.command(arguments).output().expect("fleet");
        CommandResult::new(arguments, &output)
    }

    /// Runs a command with text on standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> CommandResult {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("fleet");
        let mut stdin = child.stdin.take().expect("its input");
        // The command may end without reading it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("its end");
        CommandResult::new(arguments, &output)
    }

    /// Returns the output of a command that must succeed.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{}: {}{}", ran.command, ran.out, ran.err);
        ran.out
    }

    /// Returns the JSON output of a command that must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let text = self.done(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// Returns the error message of a command that must fail with this code.
    pub(crate) fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, code, "{}: {}{}", ran.command, ran.out, ran.err);
        assert_eq!(ran.out, "", "{}", ran.command);
        ran.err
    }

    /// Creates a fleet of this name, and returns its id.
    pub(crate) fn fleet(&self, name: &str) -> i64 {
        let fleet = self.json(&["create", name, "--type", "raspberrypi4-64"]);
        fleet["id"].as_i64().expect("an id")
    }
}

/// A finished command.
pub(crate) struct CommandResult {
    command: String,
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl CommandResult {
    fn new(arguments: &[&str], output: &Output) -> Self {
        CommandResult {
            command: format!("fleet {}", arguments.join(" ")),
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout.clone()).expect("text"),
            err: String::from_utf8(output.stderr.clone()).expect("text"),
        }
    }
}

/// Requests to the API itself, for actions that the command line does not have.
pub(crate) struct Api {
    url: String,
    token: String,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
}

impl Api {
    pub(crate) fn new(cloud: &Cloud) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::new();
        let mut api = Api {
            url: cloud.url.clone(),
            token: String::new(),
            runtime,
            client,
        };
        let login = json!({ "username": EMAIL, "password": PASSWORD });
        api.token = api.send(reqwest::Method::POST, "/login_", &login);
        api
    }

    fn send(&self, method: reqwest::Method, path: &str, body: &Value) -> String {
        self.send_as(&self.token, method, path, body)
    }

    fn send_as(&self, token: &str, method: reqwest::Method, path: &str, body: &Value) -> String {
        self.runtime.block_on(async {
            let answer = self
                .client
                .request(method, format!("{}{path}", self.url))
                .bearer_auth(token)
                .json(body)
                .send()
                .await
                .expect("an answer");
            let status = answer.status();
            let text = answer.text().await.expect("text");
            assert!(status.is_success(), "{path}: {status} {text}");
            text
        })
    }

    /// Creates a row and returns its id.
    pub(crate) fn create(&self, resource: &str, body: &Value) -> i64 {
        let text = self.send(reqwest::Method::POST, &format!("/v7/{resource}"), body);
        let row: Value = serde_json::from_str(&text).expect("a row");
        row["id"].as_i64().expect("an id")
    }

    /// Changes a row.
    pub(crate) fn change(&self, path: &str, body: &Value) {
        self.send(reqwest::Method::PATCH, &format!("/v7/{path}"), body);
    }

    pub(crate) fn rows(&self, path: &str) -> Vec<Value> {
        let text = self.runtime.block_on(async {
            let answer = self
                .client
                .get(format!("{}/v7/{path}", self.url))
                .bearer_auth(&self.token)
                .send()
                .await
                .expect("an answer");
            answer.text().await.expect("text")
        });
        let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"));
        body["d"]
            .as_array()
            .unwrap_or_else(|| panic!("{path}: {text}"))
            .clone()
    }

    /// Creates a device of a fleet and returns its id.
    pub(crate) fn device(&self, fleet: i64, name: &str, uuid: &str) -> i64 {
        let kind = self.rows("device_type(slug='raspberrypi4-64')?$select=id")[0]["id"].clone();
        let body = json!({
            "belongs_to__application": fleet, "is_of__device_type": kind,
            "device_name": name, "uuid": uuid,
        });
        self.create("device", &body)
    }

    /// Sends a report as a device, with a new key.
    pub(crate) fn report(&self, device: i64, uuid: &str, fields: &Value) {
        let path = format!("/api-key/device/{device}/device-key");
        let key = self.send(reqwest::Method::POST, &path, &json!({}));
        let key: String = serde_json::from_str(&key).expect("a key");
        let body = json!({ uuid: fields });
        self.send_as(&key, reqwest::Method::PATCH, "/device/v3/state", &body);
    }

    /// Creates a release of a fleet with one service, and returns its id.
    pub(crate) fn release(&self, fleet: i64, commit: &str, version: &str) -> i64 {
        let body = json!({
            "belongs_to__application": fleet, "commit": commit, "semver": version, "status": "success",
            "source": "local", "composition": { "services": {} },
            "start_timestamp": "2026-01-01T00:00:00Z",
        });
        self.create("release", &body)
    }
}
