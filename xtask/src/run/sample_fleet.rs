//! The fleet that `cargo xtask run` creates in its cloud, with a first release of the sample services and a second one
//! to try: everything through the command line, as a user would do it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::cloud::Cloud;
use super::engine_choice::Engine;
use super::samples::Samples;
use super::session_folder::SampleFleet;

pub(super) const NAME: &str = "sample";
/// The fleet's first release, and the one to try.
pub(super) const FIRST: &str = "1.0.0";
pub(super) const SECOND: &str = "2.0.0";
/// The time limit for the device's tunnel to open.
const REACHED: Duration = Duration::from_secs(30);
/// The interval at which the cloud is asked about the device.
const LOOK_AT_CLOUD: Duration = Duration::from_millis(250);

/// Creates the fleet for this device type; returns its number, and the key that devices register with.
pub(super) fn make(cloud: &Cloud, board: &str) -> Result<SampleFleet> {
    let made = cloud.fleet(&["create", NAME, "--type", board])?;
    let id = made["id"].as_i64().context("the fleet has no id")?;
    let answer = cloud.fleet(&["keys", "provisioning", NAME])?;
    let key = answer["key"]
        .as_str()
        .context("the cloud returned no key")?;
    Ok(SampleFleet {
        id,
        key: key.to_owned(),
    })
}

/// The compose files of two releases.
pub(super) struct ComposeFiles {
    pub(super) first: PathBuf,
    pub(super) second: PathBuf,
}

impl ComposeFiles {
    /// Writes them into `folder`. The parts of the images for `engine` are put into `images` first.
    pub(super) async fn write(
        samples: &Samples,
        engine: &Engine,
        images: SocketAddr,
        folder: &Path,
    ) -> Result<Self> {
        if let Engine::Docker(address) = engine {
            samples.push(address, images).await.with_context(|| {
                format!(
                    "the Docker engine at {address} must be able to reach the registry on this machine at {images}; `--engine wasm` runs without Docker"
                )
            })?;
        }
        fs::create_dir_all(folder)?;
        let written = |name: &str, greeting: &str| {
            let file = folder.join(name);
            let text = samples.compose(images, greeting);
            fs::write(&file, text)
                .with_context(|| format!("failed to write `{}`", file.display()))?;
            anyhow::Ok(file)
        };
        Ok(ComposeFiles {
            first: written("first.yml", "Hello")?,
            second: written("second.yml", "Good day")?,
        })
    }
}

/// Deploys the first release.
pub(super) async fn deploy(cloud: &Cloud, compose: &Path) -> Result<()> {
    let compose = compose.to_string_lossy();
    let words = [
        "deploy",
        &*compose,
        "--fleet",
        NAME,
        "--release-version",
        FIRST,
    ];
    cloud.fleet_shown(&words).await
}

/// Returns the config.json with which a device joins the fleet.
pub(super) fn device_config(cloud: &Cloud, board: &str, fleet: &SampleFleet) -> Value {
    json!({
        "applicationId": fleet.id,
        "deviceType": board,
        "apiEndpoint": cloud.url,
        "registryEndpoint": cloud.registry_at.to_string(),
        "apiKey": fleet.key,
    })
}

/// Waits until the device with this `uuid` holds its tunnel.
pub(super) async fn is_reached(cloud: &mut Cloud, uuid: &str) -> Result<()> {
    let deadline = Instant::now() + REACHED;
    loop {
        cloud.must_run()?;
        let devices = cloud.fleet(&["devices", "--fleet", NAME])?;
        let ours = devices.as_array().into_iter().flatten();
        let mut ours = ours.filter(|device| device["uuid"] == uuid);
        if ours.any(|device| device["connected"] == true)
            && cloud.fleet(&["device", "ping", uuid]).is_ok()
        {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the device did not connect to the cloud within {REACHED:?}; the log says why");
        }
        tokio::time::sleep(LOOK_AT_CLOUD).await;
    }
}
