//! Secrets are encrypted in the database, with keys that are not in it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::Router;
use data::testing::{on_fresh, sql, text};
use data::{Database, Dialect, Options};
use http::Request;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{VALUE, variables};
use crate::fake_device::{SECRET, connect, known};
use crate::harness::Cloud;
use crate::reach::until_connected;
use crate::shop::{Device, Shop};

pub(super) const PROGRAM: &str = env!("CARGO_BIN_EXE_fleet-cloud");

/// A key file, and a database.
pub(super) struct Keys {
    folder: tempfile::TempDir,
    database: String,
}

impl Keys {
    fn new(database: &str) -> Self {
        Keys {
            folder: tempfile::tempdir().expect("a folder"),
            database: database.to_owned(),
        }
    }

    /// Creates a new key.
    pub(super) fn line(name: &str) -> String {
        let made = Command::new(PROGRAM)
            .args(["secrets-key", "generate", "--name", name])
            .output()
            .expect("the program");
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).expect("a line")
    }

    /// Writes a file with these keys.
    fn file(&self, lines: &[&str]) -> PathBuf {
        let path = self.folder.path().join("keys");
        std::fs::write(&path, lines.concat()).expect("a file");
        let owner = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, owner).expect("its mode");
        path
    }

    async fn start(&self, lines: &[&str]) -> Cloud {
        match lines {
            [] => Cloud::start(&self.database).await,
            lines => {
                let path = self.file(lines);
                let environment = [("FLEET_CLOUD_SECRETS_KEY_FILE", path.to_str().expect("text"))];
                Cloud::start_in(&self.database, "", &environment).await
            }
        }
    }

    /// Returns the output of a command with these keys; it ends within a minute.
    async fn run(&self, arguments: &[&str], lines: &[&str]) -> Output {
        // A start that is not refused would run forever.
        let mut command = Command::new("timeout");
        command.args(["60", PROGRAM]);
        command.args(arguments).args(["--database", &self.database]);
        if !lines.is_empty() {
            command.arg("--secrets-key-file").arg(self.file(lines));
        }
        tokio::task::spawn_blocking(move || command.output())
            .await
            .expect("waiting")
            .expect("the program")
    }

    /// Returns why a start fails.
    async fn refused(&self, lines: &[&str]) -> String {
        let output = self.run(&["serve", "--listen", "127.0.0.1:0"], lines).await;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        stderr
    }

    /// Returns the output of `rotate-secrets`.
    async fn rotate(&self, more: &[&str], lines: &[&str]) -> String {
        let output = self.run(&[&["rotate-secrets"], more].concat(), lines).await;
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Returns every byte of the database: of the files of SQLite, or the rows of PostgreSQL.
    async fn everything(&self) -> Vec<u8> {
        if let Some(file) = self.database.strip_prefix("sqlite:") {
            let mut bytes = std::fs::read(file).expect("the database");
            for beside in ["-wal", "-shm"] {
                let beside = format!("{file}{beside}");
                if Path::new(&beside).exists() {
                    bytes.extend(std::fs::read(&beside).expect("what is beside it"));
                }
            }
            return bytes;
        }
        let mut bytes = Vec::new();
        let database = self.open().await;
        assert_eq!(database.dialect(), Dialect::Postgres);
        let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()";
        for table in texts(&database, tables).await {
            let rows = texts(&database, &format!("SELECT t::text FROM \"{table}\" AS t")).await;
            bytes.extend(rows.concat().into_bytes());
        }
        database.close().await;
        bytes
    }

    async fn open(&self) -> Database {
        let options = Options::default().with_connections(2);
        Database::open(&self.database, &options)
            .await
            .expect("the database")
    }

    /// Returns a secret text that is found in the database.
    async fn found(&self) -> Option<&'static str> {
        let bytes = self.everything().await;
        let found = |text: &&str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
        [VALUE, SECRET, "BEGIN CERTIFICATE"].into_iter().find(found)
    }

    /// Returns the stored form of the signing keys.
    async fn signing_keys(&self) -> Vec<String> {
        let database = self.open().await;
        let kept = texts(
            &database,
            "SELECT value FROM platform_setting WHERE name IN ('session-signing-secret', 'registry-signing-key') \
             ORDER BY name",
        )
        .await;
        database.close().await;
        kept
    }
}

async fn texts(database: &Database, statement: &str) -> Vec<String> {
    let texts = database.texts(&text(statement)).await;
    texts.expect("an answer").into_iter().flatten().collect()
}

/// Returns everything that a device receives.
async fn given(device: &Device<'_>) -> String {
    device.state().await.0.to_string()
}

/// Checks that requests to the device contain the key of its supervisor.
async fn check_requests_have_the_key(shop: &Shop<'_>) {
    let device = known(shop.cloud, &shop.ann, shop.fleet).await;
    let router = Router::new().fallback(async |request: Request<axum::body::Body>| {
        request.uri().query().unwrap_or_default().to_owned()
    });
    let tunnel = connect(shop.cloud, &device, router).await;
    // The cloud may know the tunnel a moment later than the device does.
    until_connected(&shop.ann, device.id, true).await;
    let body = json!({ "uuid": device.uuid, "method": "GET" });
    let (status, query) = shop
        .ann
        .send(Method::POST, "/supervisor/v1/device", body)
        .await;
    assert_eq!(status, StatusCode::OK, "{query}");
    assert_eq!(query, "apikey=secret+of+the+supervisor");
    tunnel.abort();
}

#[tokio::test]
async fn secrets_are_not_in_the_bytes_of_the_database() {
    on_fresh(async |url| {
        let keys = Keys::new(&url);
        let key = Keys::line("a");
        let cloud = keys.start(&[&key]).await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let variables = variables(&shop, &device).await;
        assert_eq!(
            device.report(json!({ "api_secret": SECRET })).await,
            StatusCode::OK
        );
        check_requests_have_the_key(&shop).await;
        let of_device = ("device_environment_variable", "device", json!(device.id));
        let path = format!("/v7/{}?$filter=true", of_device.0);
        let body = json!({ "value": format!("{VALUE}-again") });
        assert_eq!(
            shop.ann.send(Method::PATCH, &path, body).await.0,
            StatusCode::OK
        );
        // A readable variable is encrypted once it becomes secret.
        let body = json!({ of_device.1: of_device.2, "name": "LATE", "value": "not-yet-secret" });
        let late = shop.ann.create(of_device.0, body).await;
        let path = format!("/v7/{}({late})", of_device.0);
        let (status, _) = shop
            .ann
            .send(Method::PATCH, &path, json!({ "is_secret": true }))
            .await;
        assert_eq!(status, StatusCode::OK);

        assert_eq!(keys.found().await, None);
        for kept in keys.signing_keys().await {
            assert!(kept.starts_with("sealed:1:a:"), "{kept}");
        }
        let state = given(&device).await;
        for (resource, _, value) in &variables {
            let value = if *resource == of_device.0 {
                format!("{VALUE}-again")
            } else {
                value.clone()
            };
            assert!(state.contains(&value), "{resource}: {state}");
        }
        assert!(state.contains("not-yet-secret"), "{state}");
        // The same keys are valid for the next program.
        let (token, device_key) = (shop.ann.token.clone(), device.signed.token.clone());
        let path = format!("/device/v3/{}/state", device.uuid);
        cloud.end().await;
        let cloud = keys.start(&[&key]).await;
        assert_eq!(
            cloud.by(token).get("/user/v1/whoami").await.0,
            StatusCode::OK
        );
        let (_, after) = cloud.by(device_key).get(&path).await;
        assert!(
            after.to_string().contains(&format!("{VALUE}-again")),
            "{after}"
        );
        assert_eq!(keys.found().await, None);
        cloud.end().await;
        assert_eq!(keys.found().await, None);
    })
    .await;
}

#[tokio::test]
async fn a_start_without_the_key_or_with_a_wrong_one_says_which() {
    on_fresh(async |url| {
        let keys = Keys::new(&url);
        let (a, b) = (Keys::line("a"), Keys::line("b"));
        let other = Keys::line("a");
        let cloud = keys.start(&[&a]).await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        variables(&shop, &device).await;
        let (path, key) = (
            format!("/device/v3/{}/state", device.uuid),
            device.signed.token.clone(),
        );
        cloud.end().await;
        let before = keys.everything().await.len();
        for lines in [&[][..], &[b.as_str()]] {
            let message = keys.refused(lines).await;
            assert!(
                message.contains("the key `a`") && message.contains("`secrets_key_file`"),
                "{message}"
            );
        }
        for lines in [&[other.as_str()][..], &[&b, &other]] {
            let message = keys.refused(lines).await;
            assert!(
                message.contains("another key that is also called `a`"),
                "{message}"
            );
        }
        let message = keys.refused(&["nonsense"]).await;
        assert!(message.contains("line 1 is not a key"), "{message}");
        let rotated = keys.run(&["rotate-secrets"], &[&b]).await;
        assert!(!rotated.status.success(), "{rotated:?}");
        // All of that is still there.
        assert!(keys.everything().await.len() >= before);
        let cloud = keys.start(&[&b, &a]).await;
        let (_, state) = cloud.by(key).get(&path).await;
        assert!(state.to_string().contains(VALUE), "{state}");
        cloud.end().await;
    })
    .await;
}

#[tokio::test]
async fn secrets_are_rotated_beside_the_running_cloud() {
    on_fresh(async |url| {
        let keys = Keys::new(&url);
        let (a, b) = (Keys::line("a"), Keys::line("b"));
        // An older database, and one without keys.
        let cloud = keys.start(&[]).await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let of_device = shop.services[0];
        variables(&shop, &device).await;
        assert_eq!(
            device.report(json!({ "api_secret": SECRET })).await,
            StatusCode::OK
        );
        assert_eq!(keys.found().await, Some(VALUE));
        let (token, key, uuid) = (
            shop.ann.token.clone(),
            device.signed.token.clone(),
            device.uuid.clone(),
        );
        cloud.end().await;

        let counter = Arc::new(AtomicU64::new(0));
        for (lines, key_name) in [(&[a.as_str()][..], "a"), (&[&b, &a], "b")] {
            let cloud = keys.start(lines).await;
            let ann = cloud.by(token.clone());
            let device = cloud.by(key.clone());
            let stop = AtomicBool::new(false);
            let state = format!("/device/v3/{uuid}/state");
            let writes = async {
                let path =
                    format!("/v7/service_environment_variable?$filter=service eq {of_device}");
                while !stop.load(Ordering::Relaxed) {
                    let number = counter.fetch_add(1, Ordering::Relaxed) + 1;
                    let value = format!("{VALUE}-{number}-end");
                    let body = json!({ "value": value });
                    let (status, answer) = ann.send(Method::PATCH, &path, body).await;
                    assert_eq!(status, StatusCode::OK, "{answer}");
                    let (status, state) = device.get(&state).await;
                    assert_eq!(status, StatusCode::OK, "{state}");
                    assert!(state.to_string().contains(&value), "{state}");
                }
            };
            let rotates = async {
                let mut stderr = String::new();
                for _ in 0..3 {
                    stderr = keys.rotate(&[], lines).await;
                }
                stop.store(true, Ordering::Relaxed);
                stderr
            };
            let (_, stderr) = tokio::join!(writes, rotates);
            assert!(
                stderr.contains("device.api_secret: 0 of 1 rewritten; 1 by the key "),
                "{stderr}"
            );
            assert!(
                stderr.contains(&format!("The key {key_name} encrypts 10 values.")),
                "{stderr}"
            );
            assert_eq!(
                stderr.contains("The key a is no longer used"),
                key_name == "b",
                "{stderr}"
            );
            cloud.end().await;
            assert_eq!(keys.found().await, None, "{key_name}");
        }
        // The old key may be removed.
        let cloud = keys.start(&[&b]).await;
        let (_, state) = cloud
            .by(key.clone())
            .get(&format!("/device/v3/{uuid}/state"))
            .await;
        let last = format!("{VALUE}-{}-end", counter.load(Ordering::Relaxed));
        assert!(state.to_string().contains(&last), "{state}");
        assert_eq!(
            cloud.by(token.clone()).get("/user/v1/whoami").await.0,
            StatusCode::OK
        );
        cloud.end().await;
        // And back.
        let output = keys.rotate(&["--decrypt"], &[&b]).await;
        assert!(output.contains("not encrypted"), "{output}");
        let cloud = keys.start(&[]).await;
        let (_, state) = cloud.by(key).get(&format!("/device/v3/{uuid}/state")).await;
        assert!(state.to_string().contains(&last), "{state}");
        assert_eq!(
            cloud.by(token).get("/user/v1/whoami").await.0,
            StatusCode::OK
        );
        cloud.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_ciphertext_that_was_moved_is_refused_and_stops_nobody_else() {
    on_fresh(async |url| {
        let keys = Keys::new(&url);
        let key = Keys::line("a");
        let cloud = keys.start(&[&key]).await;
        let shop = Shop::open(&cloud).await;
        let (one, other) = (shop.device(1).await, shop.device(2).await);
        let mut ids = Vec::new();
        for (device, value) in [(&one, "of-one"), (&other, "of-other")] {
            let body = json!({ "device": device.id, "name": "TOKEN", "value": value, "is_secret": true });
            ids.push(shop.ann.create("device_environment_variable", body).await);
        }
        let move_it = sql(
            "UPDATE device_environment_variable SET value = (SELECT v.value FROM device_environment_variable AS v \
             WHERE v.id = ?) WHERE id = ?",
        );
        shop.execute(move_it.with(ids[0]).with(ids[1])).await;
        assert!(given(&one).await.contains("of-one"));
        let refused = other.poll(None).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let body = refused.text().await.expect("a body");
        assert!(body.contains("cannot be decrypted") && !body.contains("of-one"), "{body}");
        let rotated = keys.run(&["rotate-secrets"], &[&key]).await;
        let stdout = String::from_utf8_lossy(&rotated.stdout).into_owned();
        let named = format!("`value` of the row {} of `device_environment_variable`", ids[1]);
        assert!(!rotated.status.success() && stdout.contains(&named), "{stdout}");
        // Setting another value is enough.
        let path = format!("/v7/device_environment_variable({})", ids[1]);
        let (status, _) = shop.ann.send(Method::PATCH, &path, json!({ "value": "changed" })).await;
        assert_eq!(status, StatusCode::OK);
        assert!(given(&other).await.contains("changed"));
        // A supervisor's key that cannot be read is reported again.
        for device in [&one, &other] {
            let secret = json!({ "api_secret": format!("key of {}", device.id) });
            assert_eq!(device.report(secret).await, StatusCode::OK);
        }
        let move_it = sql("UPDATE device SET api_secret = (SELECT d.api_secret FROM device AS d WHERE d.id = ?) WHERE id = ?");
        shop.execute(move_it.with(one.id).with(other.id)).await;
        let secret = json!({ "api_secret": format!("key of {}", other.id) });
        assert_eq!(other.report(secret).await, StatusCode::OK);
        let rotated = keys.run(&["rotate-secrets"], &[&key]).await;
        assert!(rotated.status.success(), "{rotated:?}");
        let shown: Value = shop.ann.rows(&path).await.remove(0);
        assert_eq!(shown["value"], Value::Null);
        cloud.end().await;
    })
    .await;
}
