//! The registries of `cargo xtask run`: Debian's docker-registry, once as the cloud's, which takes the cloud's
//! tokens, and once as the one that a release's container images are built into, which asks nobody.

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
/// How long the start may take.
const START: Duration = Duration::from_secs(20);

/// Has it installed, where that is for us to do.
pub(super) fn install() -> Result<()> {
    match packages::program(PROGRAM) {
        Some(_) => Ok(()),
        None => packages::install_if_debian_root(&[PROGRAM], "the registry of the cloud"),
    }
}

/// Where the images of releases are kept.
#[derive(Debug, Clone, derive_more::Display)]
pub(super) enum ImagesIn {
    /// In a registry of ours, which takes the cloud's tokens.
    Ours(SocketAddr),
    /// In somebody's.
    Named(String),
}

/// Whose tokens a registry takes.
pub(super) struct Trust<'a> {
    /// Where it sends its clients for them.
    pub(super) realm: &'a str,
    /// What they are signed with, in PEM.
    pub(super) certificate: &'a str,
}

/// Starts one at `address`, with its files in `folder`. None where the program is not installed.
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
    // What is JSON is YAML as well.
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
