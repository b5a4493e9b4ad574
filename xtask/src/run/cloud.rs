//! The cloud that `cargo xtask run` starts: its processes, and its first fleet with a sample release.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::{Client, Method, RequestBuilder};
use rustix::process::{Signal, kill_process};
use serde_json::{Map, Value, json};

use super::device::Device;
use super::traces::apart_from_the_terminal;
use super::{LOOK_AGAIN, registry, say};
use crate::layout::Layout;
use crate::processes;

const EMAIL: &str = "admin@localhost.localdomain";
/// Of a cloud for one session on one machine, in reach of its loopback alone.
const PASSWORD: &str = "fleet-cloud";
const FLEET: &str = "sample";
/// How long a start may take.
const START: Duration = Duration::from_secs(60);
/// How long the device's tunnel may take to be there.
const REACHED: Duration = Duration::from_secs(30);
/// How long each process may take to end.
const END: Duration = Duration::from_millis(1500);

/// The running cloud, with its registry.
pub(super) struct Cloud {
    cloud: Child,
    registry: Option<Child>,
    registry_host: String,
    url: String,
    client: Client,
    /// Of the administrator.
    token: String,
}

impl Cloud {
    /// Starts both, and signs in.
    pub(super) async fn start(layout: &Layout, at: SocketAddr, folder: &Path) -> Result<Self> {
        let program = layout.folder.join("bin/fleet-cloud");
        let database = format!("sqlite:{}", folder.join("cloud.sqlite").display());
        let registry_at = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new(&program);
        command
            .args([
                "serve",
                "--listen",
                &at.to_string(),
                "--database",
                &database,
            ])
            .args(["--registry", &registry_at.to_string()])
            .args(["--admin-email", EMAIL, "--admin-password", PASSWORD])
            .env(
                "RUST_LOG",
                std::env::var("RUST_LOG").unwrap_or_else(|_| "warn".into()),
            );
        let cloud = apart_from_the_terminal(&mut command)
            .spawn()
            .context("failed to start the cloud")?;
        let mut running = Cloud {
            cloud,
            registry: None,
            registry_host: registry_at.to_string(),
            url: format!("http://{at}"),
            client: Client::new(),
            token: String::new(),
        };
        let ready = running
            .begin(&program, &database, registry_at, folder)
            .await;
        match ready {
            Ok(()) => Ok(running),
            Err(error) => {
                running.end().await?;
                Err(error)
            }
        }
    }

    async fn begin(
        &mut self,
        program: &Path,
        database: &str,
        registry_at: SocketAddr,
        folder: &Path,
    ) -> Result<()> {
        let deadline = Instant::now() + START;
        let ping = format!("{}/ping", self.url);
        while self.client.get(&ping).send().await.is_err() {
            self.must_run()?;
            if Instant::now() > deadline {
                bail!("the cloud did not answer on {} within {START:?}", self.url);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let certificate = Command::new(program)
            .args(["registry-certificate", "--database", database])
            .output()?;
        let certificate = String::from_utf8(certificate.stdout)?;
        let realm = format!("{}/auth/v1/token", self.url);
        self.registry = registry::start(registry_at, folder, &realm, &certificate).await?;
        let login = json!({ "username": EMAIL, "password": PASSWORD });
        let login = self
            .client
            .post(format!("{}/login_", self.url))
            .json(&login);
        let answer = login.send().await?.error_for_status()?;
        self.token = answer.text().await?;
        Ok(())
    }

    /// Whether there is a registry to push to.
    pub(super) fn has_registry(&self) -> bool {
        self.registry.is_some()
    }

    /// Fails where the cloud or its registry has ended.
    pub(super) fn must_run(&mut self) -> Result<()> {
        if let Some(status) = self.cloud.try_wait()? {
            bail!("the cloud ended by itself ({status}); its log is above");
        }
        if let Some(registry) = &mut self.registry
            && let Some(status) = registry.try_wait()?
        {
            bail!("docker-registry ended by itself ({status})");
        }
        Ok(())
    }

    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        request.bearer_auth(&self.token)
    }

    /// The JSON of an answer; nothing where there is none.
    async fn answer(&self, request: RequestBuilder) -> Result<Value> {
        let answer = request.send().await?;
        let (status, path) = (answer.status(), answer.url().path().to_owned());
        let text = answer.text().await?;
        if !status.is_success() {
            bail!("the cloud answered {status} to `{path}`: {text}");
        }
        // "OK" and nothing are no JSON.
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    async fn rows(&self, path: &str) -> Result<Vec<Value>> {
        let mut answer = self.answer(self.ask(Method::GET, path)).await?;
        match answer["d"].take() {
            Value::Array(rows) => Ok(rows),
            other => bail!("the cloud answered `{other}` to `{path}`"),
        }
    }

    async fn create(&self, resource: &str, row: Value) -> Result<i64> {
        let request = self
            .ask(Method::POST, &format!("/v7/{resource}"))
            .json(&row);
        let made = self.answer(request).await?;
        made["id"]
            .as_i64()
            .with_context(|| format!("no `{resource}` was made"))
    }

    async fn change(&self, resource: &str, id: i64, fields: Value) -> Result<()> {
        let request = self
            .ask(Method::PATCH, &format!("/v7/{resource}({id})"))
            .json(&fields);
        self.answer(request).await.map(drop)
    }

    /// Makes a fleet for this kind of board.
    pub(super) async fn first_fleet(&self, board: &str) -> Result<Fleet<'_>> {
        let organizations = self.rows("/v7/organization?$select=id").await?;
        let organization = organizations.first().context("there is no organization")?;
        let path = format!("/v7/device_type(slug='{board}')?$select=id");
        let boards = self.rows(&path).await?;
        let device_type = boards
            .first()
            .with_context(|| format!("the catalogue has no board `{board}`"))?;
        let id = self
            .create(
                "application",
                json!({
                    "app_name": FLEET,
                    "organization": organization["id"],
                    "is_for__device_type": device_type["id"],
                }),
            )
            .await?;
        Ok(Fleet {
            cloud: self,
            id,
            board: board.to_owned(),
        })
    }

    /// Tells where everything is.
    pub(super) fn introduce(&self, device: &Device, uuid: &str, key: &str) {
        let proxied = format!(
            "curl -X POST {}/supervisor/v1/device -H 'authorization: Bearer '$TOKEN \\\n\
             \x20   -H 'content-type: application/json' -d '{{\"uuid\":\"{uuid}\",\"method\":\"GET\"}}'",
            self.url
        );
        say(&format!(
            "\nthe cloud answers on {url}\n\
             sign in: {EMAIL}, password {PASSWORD}\n\
             registry: {registry}\n\
             fleet:   admin/{FLEET}, provisioning key {key}\n\
             device:  {uuid}, which answers on {base} with the API key {api_key}\n\n\
             try:\n\
             \x20 TOKEN=$(curl -s {url}/login_ -H 'content-type: application/json' \\\n\
             \x20   -d '{{\"username\":\"{EMAIL}\",\"password\":\"{PASSWORD}\"}}')\n\
             \x20 curl {url}/v7/device -H 'authorization: Bearer '$TOKEN\n\
             \x20 {proxied}\n\n\
             Ctrl-C stops it all",
            url = self.url,
            registry = match self.has_registry() {
                true => self.registry_host.as_str(),
                false =>
                    "none, since docker-registry is not installed; so the fleet has no release",
            },
            base = device.base,
            api_key = device.key,
        ));
    }

    /// Ends it and its registry.
    pub(super) async fn end(self) -> Result<()> {
        for mut process in [Some(self.cloud), self.registry].into_iter().flatten() {
            if let Some(pid) = processes::pid(process.id())
                && process.try_wait()?.is_none()
            {
                kill_process(pid, Signal::TERM)?;
            }
            let deadline = Instant::now() + END;
            while process.try_wait()?.is_none() {
                if Instant::now() > deadline {
                    process.kill()?;
                    process.wait()?;
                    break;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
        Ok(())
    }
}

/// The fleet of the session.
pub(super) struct Fleet<'a> {
    cloud: &'a Cloud,
    id: i64,
    board: String,
}

impl Fleet<'_> {
    /// Pushes components, and makes the release of them that the fleet follows.
    pub(super) async fn first_release(&self, components: &[(&str, &Path)]) -> Result<()> {
        let cloud = self.cloud;
        let began = "2025-01-01T00:00:00.000Z";
        let mut images = Vec::new();
        let mut services = Map::new();
        for (name, component) in components {
            let service = json!({ "service_name": name, "application": self.id });
            let service = cloud.create("service", service).await?;
            let image = json!({
                "is_a_build_of__service": service, "status": "running", "start_timestamp": began,
            });
            let image = cloud.create("image", image).await?;
            let path = format!("/v7/image({image})?$select=is_stored_at__image_location");
            let rows = cloud.rows(&path).await?;
            let location = rows.first().map(|row| &row["is_stored_at__image_location"]);
            let location = location
                .and_then(Value::as_str)
                .context("the image has no place")?;
            let digest = registry::push(location, &self.token(location).await?, component).await?;
            let pushed = json!({
                "status": "success", "push_timestamp": began, "content_hash": digest,
            });
            cloud.change("image", image, pushed).await?;
            images.push(image);
            services.insert((*name).to_owned(), json!({}));
        }
        let release = json!({
            "belongs_to__application": self.id,
            "commit": format!("{:032x}", std::process::id()),
            "composition": { "version": "2.1", "services": services },
            "status": "running",
            "source": "cloud",
            "start_timestamp": began,
        });
        let release = cloud.create("release", release).await?;
        for image in images {
            let part = json!({ "image": image, "is_part_of__release": release });
            cloud.create("release_image", part).await?;
        }
        cloud
            .change("release", release, json!({ "status": "success" }))
            .await
    }

    /// A token of the registry to push there.
    async fn token(&self, location: &str) -> Result<String> {
        let (host, repository) = location.split_once('/').context("the image has no place")?;
        let path = format!("/auth/v1/token?service={host}&scope=repository:{repository}:pull,push");
        let given = self
            .cloud
            .answer(self.cloud.ask(Method::GET, &path))
            .await?;
        let token = given["token"]
            .as_str()
            .context("the cloud gives no token")?;
        Ok(token.to_owned())
    }

    /// The key that devices register with.
    pub(super) async fn provisioning_key(&self) -> Result<String> {
        let path = format!("/api-key/application/{}/provisioning", self.id);
        let key = self
            .cloud
            .answer(self.cloud.ask(Method::POST, &path).json(&json!({})))
            .await?;
        Ok(key.as_str().context("the cloud gives no key")?.to_owned())
    }

    /// What a device's config.json says so that it joins the fleet with this key.
    pub(super) fn device_config(&self, key: &str) -> Value {
        json!({
            "applicationId": self.id,
            "deviceType": self.board,
            "apiEndpoint": self.cloud.url,
            "registryEndpoint": self.cloud.registry_host,
            "apiKey": key,
        })
    }

    /// Waits until the fleet's device holds its tunnel; its uuid.
    pub(super) async fn device_is_reached(&self) -> Result<String> {
        let deadline = Instant::now() + REACHED;
        let path = format!(
            "/v7/device?$select=uuid&$filter=belongs_to__application%20eq%20{}%20and%20is_connected_to_vpn%20eq%20true",
            self.id
        );
        loop {
            let rows = self.cloud.rows(&path).await?;
            if let Some(uuid) = rows.first().and_then(|row| row["uuid"].as_str()) {
                return Ok(uuid.to_owned());
            }
            if Instant::now() > deadline {
                bail!(
                    "the device did not connect to the cloud within {REACHED:?}; the log says why"
                );
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}
