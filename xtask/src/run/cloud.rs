//! The cloud that `cargo xtask run` starts: its process and its registry's, and the command line as its administrator.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::children::{self, apart_from_the_terminal};
use super::http_client::http_client;
use super::registry;
use super::registry::{ImagesIn, Trust};
use super::session_folder::SessionFolder;
use crate::layout::Layout;

pub(super) const EMAIL: &str = "admin@localhost.localdomain";
/// The password of a cloud for one session on one machine, reachable only through its loopback interface.
pub(super) const PASSWORD: &str = "fleet-cloud";
/// The time limit for starting.
const START: Duration = Duration::from_secs(60);
/// The time limit for ending the processes.
const END: Duration = Duration::from_millis(1500);

/// The running cloud, with its registry.
pub(super) struct Cloud {
    cloud: Child,
    registry: Option<Child>,
    /// The registry of releases' images.
    images: Option<Child>,
    pub(super) registry_at: ImagesIn,
    pub(super) url: String,
    /// The folder of the command-line program.
    programs: std::path::PathBuf,
    /// The administrator's token.
    token: String,
}

impl Cloud {
    /// Starts both with the data in `kept`, if any, and signs in.
    pub(super) async fn start(
        layout: &Layout,
        at: SocketAddr,
        registry_at: ImagesIn,
        kept: &SessionFolder,
    ) -> Result<Self> {
        let programs = layout.folder.join("bin");
        let mut command = Command::new(programs.join("fleet-cloud"));
        command
            .args(["serve", "--listen", &at.to_string()])
            .args(["--database", &kept.database()])
            .args(["--registry", &registry_at.to_string()])
            .args(["--public-url", &format!("http://{at}")])
            .args(["--admin-email", EMAIL, "--admin-password", PASSWORD])
            .env(
                "RUST_LOG",
                std::env::var("RUST_LOG").unwrap_or_else(|_| "warn".into()),
            );
        if let ImagesIn::Ours(address) = registry_at {
            command.args(["--registry-url", &format!("http://{address}")]);
        }
        let cloud = apart_from_the_terminal(&mut command)
            .spawn()
            .context("failed to start the cloud")?;
        let mut running = Cloud {
            cloud,
            registry: None,
            images: None,
            registry_at,
            url: format!("http://{at}"),
            programs,
            token: String::new(),
        };
        match running.begin(kept).await {
            Ok(()) => Ok(running),
            Err(error) => {
                running.end().await?;
                Err(error)
            }
        }
    }

    async fn begin(&mut self, kept: &SessionFolder) -> Result<()> {
        let ping = format!("{}/ping", self.url);
        if !children::answers(&ping, START, || self.must_run()).await? {
            bail!("the cloud did not answer on {} within {START:?}", self.url);
        }
        let certificate = Command::new(self.programs.join("fleet-cloud"))
            .args(["registry-certificate", "--database", &kept.database()])
            .output()?;
        let trust = Trust {
            realm: &format!("{}/auth/v1/token", self.url),
            certificate: &String::from_utf8(certificate.stdout)?,
        };
        if let ImagesIn::Ours(address) = self.registry_at {
            self.registry = registry::start(address, &kept.registry(), Some(trust)).await?;
        }
        let login = http_client()?.post(format!("{}/login_", self.url));
        let login = login.json(&json!({ "username": EMAIL, "password": PASSWORD }));
        let answer = login.send().await?.error_for_status();
        let answer = answer.context("the cloud rejected its administrator's password")?;
        self.token = answer.text().await?;
        Ok(())
    }

    /// Returns whether there is a registry to push to.
    pub(super) fn has_registry(&self) -> bool {
        self.registry.is_some() || matches!(self.registry_at, ImagesIn::Named(_))
    }

    /// Starts the registry that images are built into, with its files in `folder`.
    pub(super) async fn start_images(&mut self, at: SocketAddr, folder: &Path) -> Result<()> {
        self.images = registry::start(at, folder, None).await?;
        Ok(())
    }

    /// Fails if the cloud or its registry has ended.
    pub(super) fn must_run(&mut self) -> Result<()> {
        if let Some(status) = self.cloud.try_wait()? {
            bail!("the cloud ended unexpectedly ({status}); its log is above");
        }
        for registry in [&mut self.registry, &mut self.images].into_iter().flatten() {
            if let Some(status) = registry.try_wait()? {
                bail!("docker-registry ended unexpectedly ({status})");
            }
        }
        Ok(())
    }

    /// Returns the JSON output of `fleet`, run as the administrator.
    ///
    /// # Errors
    /// If it fails, with its message.
    pub(super) fn fleet(&self, words: &[&str]) -> Result<Value> {
        let mut command = self.command_line(words);
        let output = command.arg("--json").output();
        let output = output.context("failed to start `fleet`")?;
        let shown = words.join(" ");
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            bail!("`fleet {shown}` failed: {}", message.trim());
        }
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("`fleet {shown}` did not print JSON"))
    }

    /// Runs `fleet` as the administrator, and shows its output.
    ///
    /// # Errors
    /// If it fails.
    pub(super) async fn fleet_shown(&self, words: &[&str]) -> Result<()> {
        let mut command = tokio::process::Command::from(self.command_line(words));
        let status = command.status().await.context("failed to start `fleet`")?;
        if !status.success() {
            bail!("`fleet {}` failed ({status})", words.join(" "));
        }
        Ok(())
    }

    fn command_line(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join("fleet"));
        command
            .args(words)
            .env("FLEET_URL", &self.url)
            .env("FLEET_TOKEN", &self.token);
        command
    }

    /// Ends the cloud and its registries.
    pub(super) async fn end(self) -> Result<()> {
        let mut processes: Vec<Child> = [Some(self.cloud), self.registry, self.images]
            .into_iter()
            .flatten()
            .collect();
        Ok(children::end(&mut processes, END).await?)
    }
}
