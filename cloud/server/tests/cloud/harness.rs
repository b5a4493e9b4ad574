//! Starts the cloud like a user, and sends requests to it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use data::testing::on_fresh;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);
pub(crate) const EMAIL: &str = "ann@acme.example";
pub(crate) const PASSWORD: &str = "correct horse battery";

/// Creates a client.
pub(crate) fn client() -> reqwest::Client {
    plain_http().build().expect("a client")
}

/// Creates a client with this address.
pub(crate) fn client_at(address: [u8; 4]) -> reqwest::Client {
    plain_http()
        .local_address(std::net::IpAddr::from(address))
        .build()
        .expect("a client")
}

/// Clients that trust no certificate: the clouds of the tests use plain HTTP, and reading all certificates of the
/// system takes a test program longer than most requests. They need a provider of cryptography anyway.
pub(crate) fn plain_http() -> reqwest::ClientBuilder {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().tls_certs_only([])
}

/// A running cloud, which ends when the value is dropped.
pub(crate) struct Cloud {
    child: Child,
    pub(crate) url: String,
    /// The address of its database.
    pub(crate) database: String,
    client: reqwest::Client,
    log: Arc<Mutex<String>>,
    _folder: tempfile::TempDir,
}

impl Cloud {
    /// Starts a cloud on a database.
    pub(crate) async fn start(database: &str) -> Self {
        Self::start_with(database, "").await
    }

    /// Starts a cloud with a configuration file.
    pub(crate) async fn start_with(database: &str, configuration: &str) -> Self {
        Self::start_at("127.0.0.1:0", database, configuration, &[]).await
    }

    /// Starts a cloud with additional environment variables.
    pub(crate) async fn start_in(
        database: &str,
        configuration: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        Self::start_at("127.0.0.1:0", database, configuration, environment).await
    }

    /// Starts it again at the same address, after it has ended.
    pub(crate) async fn restart(self) -> Self {
        let (url, database) = (self.url.clone(), self.database.clone());
        self.end().await;
        let address = url.strip_prefix("http://").expect("an address");
        Self::start_at(address, &database, "", &[]).await
    }

    /// Starts a cloud at the address of one that was killed.
    pub(crate) async fn again(url: &str, database: &str, configuration: &str) -> Self {
        let address = url.strip_prefix("http://").expect("an address");
        Self::start_at(address, database, configuration, &[]).await
    }

    async fn start_at(
        address: &str,
        database: &str,
        configuration: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("cloud.toml");
        std::fs::write(&file, configuration).expect("a file");
        let client = client();
        let child = Command::new(env!("CARGO_BIN_EXE_fleet-cloud"))
            .args(["serve", "--listen", address, "--database", database])
            .args(["--admin-email", EMAIL, "--admin-password", PASSWORD])
            .arg("--config")
            .arg(&file)
            .env("RUST_LOG", "info")
            .envs(environment.iter().copied())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program");
        // From here on, it is ended in any case.
        let mut cloud = Cloud {
            child,
            url: String::new(),
            database: database.to_owned(),
            client,
            log: Arc::default(),
            _folder: folder,
        };
        let mut log = BufReader::new(cloud.child.stderr.take().expect("its log"));
        let mut line = String::new();
        let begun = Instant::now();
        cloud.url = loop {
            line.clear();
            let read = log.read_line(&mut line).expect("a line");
            assert!(read > 0, "the cloud ended: {:?}", cloud.child.wait());
            cloud.log.lock().expect("the log").push_str(&line);
            if let Some((_, address)) = line.trim().split_once("listening at ") {
                break address.to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "no start");
        };
        // The output must be read, or the program blocks.
        let lines = Arc::clone(&cloud.log);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while log.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line);
                lines.lock().expect("the log").push_str(&text);
                line.clear();
            }
            if std::env::var_os("SHOW_LOGS").is_some() {
                eprintln!("{}", lines.lock().expect("the log"));
            }
        });
        cloud
    }

    /// Returns its log.
    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("the log").clone()
    }

    /// Requests its end, and waits for it.
    pub(crate) async fn end(mut self) {
        rustix::process::kill_process(self.pid(), rustix::process::Signal::TERM)
            .expect("the signal");
        let ended = tokio::task::spawn_blocking(move || self.child.wait());
        let status = ended.await.expect("waiting").expect("a status");
        assert!(status.success(), "{status}");
    }

    /// Ends it without notice, like a machine that fails.
    pub(crate) fn kill(&self) {
        rustix::process::kill_process(self.pid(), rustix::process::Signal::KILL)
            .expect("the signal");
    }

    /// Returns when a [killed](Self::kill) cloud has ended, and its address is free.
    pub(crate) fn gone(&self) {
        let waited =
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        let id = rustix::process::WaitId::Pid(self.pid());
        rustix::process::waitid(id, waited).expect("its end");
    }

    fn pid(&self) -> rustix::process::Pid {
        let pid = i32::try_from(self.child.id()).ok();
        pid.and_then(rustix::process::Pid::from_raw)
            .expect("a process")
    }

    /// Returns the bytes of memory that it uses.
    pub(crate) fn memory(&self) -> usize {
        let path = format!("/proc/{}/statm", self.child.id());
        let pages = std::fs::read_to_string(path).expect("its memory");
        let resident = pages.split(' ').nth(1).expect("a number");
        resident.parse::<usize>().expect("a number") * 4096
    }

    /// Creates a request without a credential.
    pub(crate) fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Returns the answer to a sign-in from this address of the loopback network.
    pub(crate) async fn sign_in_from(&self, from: [u8; 4], name: &str, password: &str) -> Response {
        client_at(from)
            .post(format!("{}/login_", self.url))
            .json(&json!({ "username": name, "password": password }))
            .send()
            .await
            .expect("an answer")
    }

    /// Signs in as the administrator.
    pub(crate) async fn sign_in(&self) -> ApiCaller<'_> {
        let answer = self
            .ask(Method::POST, "/login_")
            .json(&json!({ "username": EMAIL, "password": PASSWORD }))
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        let token = answer.text().await.expect("a token");
        self.by(token)
    }

    /// Creates a user, if everybody may (`registration = 'open'`), and signs them in.
    pub(crate) async fn register(&self, name: &str) -> ApiCaller<'_> {
        let email = format!("{name}@other.example");
        let user = json!({ "username": name, "email": email, "password": PASSWORD });
        let made = self.ask(Method::POST, "/user/register").json(&user);
        let (status, made) = read(made.send().await.expect("an answer")).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let given = json!({ "username": name, "password": PASSWORD });
        let answer = self.ask(Method::POST, "/login_").json(&given).send().await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        self.by(answer.text().await.expect("a token"))
    }

    /// Creates requests with a credential.
    pub(crate) fn by(&self, token: String) -> ApiCaller<'_> {
        ApiCaller { cloud: self, token }
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A caller with a credential.
pub(crate) struct ApiCaller<'a> {
    cloud: &'a Cloud,
    pub(crate) token: String,
}

impl ApiCaller<'_> {
    pub(crate) fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.cloud.ask(method, path).bearer_auth(&self.token)
    }

    /// Returns the status of an answer, and its body if that is JSON.
    pub(crate) async fn answer(&self, request: RequestBuilder) -> (StatusCode, Value) {
        read(request.send().await.expect("an answer")).await
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.answer(self.ask(Method::GET, path)).await
    }

    /// Returns the rows of a GET.
    pub(crate) async fn rows(&self, path: &str) -> Vec<Value> {
        let (status, body) = self.get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body["d"].as_array().expect(path).clone()
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Value,
    ) -> (StatusCode, Value) {
        self.answer(self.ask(method, path).json(&body)).await
    }

    /// Creates a row and returns its id.
    pub(crate) async fn create(&self, resource: &str, body: Value) -> i64 {
        let (status, row) = self
            .send(Method::POST, &format!("/v7/{resource}"), body)
            .await;
        assert_eq!(status, StatusCode::CREATED, "{resource}: {row}");
        row["id"].as_i64().expect("an id")
    }

    /// Creates a fleet for this kind of board in the administrator's organization, and returns its id.
    pub(crate) async fn fleet(&self, name: &str, device_type: &str) -> i64 {
        let organization = self.rows("/v7/organization?$select=id").await[0]["id"].clone();
        let path = format!("/v7/device_type(slug='{device_type}')?$select=id");
        let device_type = self.rows(&path).await[0]["id"].clone();
        self.create(
            "application",
            json!({ "app_name": name, "organization": organization, "is_for__device_type": device_type }),
        )
        .await
    }
}

/// Returns the status and the body of an answer; text that is not JSON as a string, an empty body as null.
pub(crate) async fn read(answer: Response) -> (StatusCode, Value) {
    let status = answer.status();
    let text = answer.text().await.expect("a body");
    let body = if text.is_empty() {
        Value::Null
    } else {
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    };
    (status, body)
}

/// Runs a test against a cloud on a fresh database of each kind.
pub(crate) async fn on_both(test: impl AsyncFn(Cloud)) {
    on_fresh(async |url| test(Cloud::start(&url).await).await).await;
}
