//! The registries of `cargo xtask run`: Debian's docker-registry, once as the cloud's, which accepts the cloud's
//! tokens, and once as the one that a release's container images are built into, which needs no authentication.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::children::{self, apart_from_the_terminal};
use crate::packages;

const PROGRAM: &str = "docker-registry";
/// The time limit for starting.
const START: Duration = Duration::from_secs(20);

/// Installs it if we may do so.
pub(super) fn install() -> Result<()> {
    match packages::program(PROGRAM) {
        Some(_) => Ok(()),
        None => packages::install_if_debian_root(&[PROGRAM], "the registry of the cloud"),
    }
}

/// The registry of releases' images.
#[derive(Debug, Clone, derive_more::Display)]
pub(super) enum ImagesIn {
    /// In our own registry, which accepts the cloud's tokens.
    Ours(SocketAddr),
    /// In somebody else's.
    Named(String),
}

/// The tokens that a registry accepts.
pub(super) struct Trust<'a> {
    /// The address that clients get tokens from.
    pub(super) realm: &'a str,
    /// The certificate that verifies them, in PEM.
    pub(super) certificate: &'a str,
}

/// Starts a registry at `address`, with its files in `folder`. Returns `None` if the program is not installed.
pub(super) async fn start(
    address: SocketAddr,
    folder: &Path,
    trust: Option<Trust<'_>>,
) -> Result<Option<Child>> {
    let Some(program) = packages::program(PROGRAM) else {
        return Ok(None);
    };
    fs::create_dir_all(folder)?;
    let mut configuration = json!({
        "version": "0.1",
        "log": { "level": "error", "accesslog": { "disabled": true } },
        "storage": { "filesystem": { "rootdirectory": folder.join("data") }, "delete": { "enabled": true } },
        "http": { "addr": address.to_string() },
    });
    if let Some(Trust { realm, certificate }) = trust {
        let trusted = folder.join("cloud.pem");
        fs::write(&trusted, certificate)?;
        configuration["auth"] = json!({ "token": {
            "realm": realm, "service": address.to_string(), "issuer": "fleet-cloud", "rootcertbundle": trusted,
        } });
    }
    // JSON is also valid YAML.
    let file = folder.join("registry.yml");
    fs::write(&file, configuration.to_string())?;
    let mut command = Command::new(program);
    command
        .arg("serve")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut process = apart_from_the_terminal(&mut command)
        .spawn()
        .context("failed to start docker-registry")?;
    let ping = format!("http://{address}/v2/");
    let runs = || match process.try_wait()? {
        None => Ok(()),
        Some(status) => bail!(
            "docker-registry ended ({status}); `docker-registry serve {}` shows why",
            file.display()
        ),
    };
    if !children::answers(&ping, START, runs).await? {
        process.kill()?;
        process.wait()?;
        bail!("docker-registry did not answer on {address} within {START:?}");
    }
    Ok(Some(process))
}
