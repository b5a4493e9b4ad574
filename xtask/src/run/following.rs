//! `cargo xtask run`: a cloud, its first fleet, and a device that follows it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::cloud::{Cloud, EMAIL, PASSWORD};
use super::device::Device;
use super::registry::ImagesIn;
use super::sample_fleet::{self, ComposeFiles};
use super::samples::Samples;
use super::traces::Traces;
use super::{board, describe_board, say};
use crate::layout::Layout;

/// The parts and addresses of a session.
pub(super) struct Places<'a> {
    pub(super) layout: &'a Layout,
    /// The address of the device's API.
    pub(super) listen: SocketAddr,
    /// The address of the cloud.
    pub(super) cloud: SocketAddr,
    /// The registry that releases are deployed to, if it is not one of ours.
    pub(super) registry: Option<&'a str>,
    /// The address of the registry that the sample's images are built into.
    pub(super) images: SocketAddr,
    pub(super) traces: &'a Traces,
}

/// Starts a cloud and a device, which runs the sample as its fleet's first release, and waits as long as both run. A
/// stored session is continued.
pub(super) async fn follow(
    places: &Places<'_>,
    samples: Option<&Samples>,
    cloud: &mut Option<Cloud>,
    device: &mut Option<Device>,
) -> Result<()> {
    let (layout, traces) = (places.layout, places.traces);
    let kept = &traces.kept;
    let mut session = kept.session(&traces.engine)?;
    describe_board(&kept.host_root())?;
    let registry = match places.registry {
        Some(host) => ImagesIn::Named(host.to_owned()),
        None => ImagesIn::Ours(session.registry),
    };
    let running = Cloud::start(layout, places.cloud, registry, kept).await?;
    let cloud = cloud.insert(running);
    let is_new = session.fleet.is_none();
    let fleet = match session.fleet.clone() {
        Some(fleet) => fleet,
        None => sample_fleet::make(cloud, &board())?,
    };
    session.fleet = Some(fleet.clone());
    kept.keep(&session)?;

    let composed = match samples {
        Some(samples) => compose(cloud, samples, places).await?,
        None => None,
    };
    if let Some(composed) = &composed
        && is_new
    {
        say("\ndeploying the first release");
        sample_fleet::deploy(cloud, &composed.first).await?;
    }
    if kept.device_config().exists() {
        kept.point_device_at(&cloud.url, &cloud.registry_at)?
    } else {
        let config = sample_fleet::device_config(cloud, &board(), &fleet);
        fs::write(kept.device_config(), config.to_string())?;
    }
    let device = device.insert(Device::start(layout, places.listen, traces)?);
    device.until_it_answers(layout, &kept.device()).await?;
    device.until_plugins_are_loaded().await?;
    if let (Some(samples), Some(_)) = (samples, &composed)
        && !device.follows(samples.count()).await?
    {
        say("\nnot all services of the release are running yet; the log says why");
    }
    let uuid = uuid(&kept.device_config())?;
    sample_fleet::is_reached(cloud, &uuid).await?;
    let introduction = Introduction {
        programs: &layout.folder.join("bin"),
        device,
        cloud,
        uuid: &uuid,
        key: &fleet.key,
        composed: composed.as_ref(),
    };
    say(&introduction.text());
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        device.must_run()?;
        cloud.must_run()?;
    }
}

/// Returns the compose files of the sample, and the registry of their images; `None` if the cloud has no registry to
/// deploy to.
async fn compose(
    cloud: &mut Cloud,
    samples: &Samples,
    places: &Places<'_>,
) -> Result<Option<ComposeFiles>> {
    if !cloud.has_registry() {
        return Ok(None);
    }
    let (traces, images) = (places.traces, places.images);
    let folder = traces.samples();
    cloud.start_images(images, &folder.join("registry")).await?;
    let composed = ComposeFiles::write(samples, &traces.engine, images, &folder).await?;
    Ok(Some(composed))
}

/// Returns the uuid that the device has chosen.
fn uuid(config: &Path) -> Result<String> {
    let text = fs::read_to_string(config)
        .with_context(|| format!("failed to read `{}`", config.display()))?;
    let config: Value = serde_json::from_str(&text)?;
    let uuid = config["uuid"].as_str();
    Ok(uuid
        .context("the device has not created its uuid")?
        .to_owned())
}

/// The introduction that a user sees.
struct Introduction<'a> {
    programs: &'a Path,
    device: &'a Device,
    cloud: &'a Cloud,
    uuid: &'a str,
    key: &'a str,
    composed: Option<&'a ComposeFiles>,
}

impl Introduction<'_> {
    fn text(&self) -> String {
        let (url, uuid) = (&self.cloud.url, self.uuid);
        let short = uuid.get(..7).unwrap_or(uuid);
        let registry = if self.cloud.has_registry() {
            self.cloud.registry_at.to_string()
        } else {
            "none, since docker-registry is not installed; so the fleet has no release".into()
        };
        let facts = [
            ("dashboard", format!("{url}/dashboard")),
            ("sign in", format!("{EMAIL}, password {PASSWORD}")),
            ("cloud API", url.clone()),
            ("registry", registry),
            (
                "fleet",
                format!(
                    "{}, which devices join with the key {}",
                    sample_fleet::NAME,
                    self.key
                ),
            ),
            (
                "device",
                format!(
                    "{uuid}, itself at {} with the key {}",
                    self.device.base, self.device.key
                ),
            ),
        ];
        let mut text = String::from("\n");
        for (name, value) in facts {
            text.push_str(&format!("{name:<10} {value}\n"));
        }
        text.push_str("\ntry, in another terminal:\n");
        for line in self.lines(short) {
            text.push_str(&format!("  {line}\n"));
        }
        text + "\nCtrl-C stops it all"
    }

    /// Returns commands that work as printed, in this order.
    fn lines(&self, device: &str) -> Vec<String> {
        let url = &self.cloud.url;
        let mut lines = vec![
            format!("export PATH={}:$PATH", self.programs.display()),
            format!("fleet login {url} --email {EMAIL} --password {PASSWORD}"),
            "fleet devices".to_owned(),
            format!("fleet device blink {device}"),
        ];
        if let Some(composed) = self.composed {
            let (name, second) = (sample_fleet::NAME, sample_fleet::SECOND);
            let compose = composed.second.display();
            lines.extend([
                format!("fleet deploy {compose} --fleet {name} --release-version {second}"),
                format!("fleet device show {device}"),
                format!("fleet pin {device} {}", sample_fleet::FIRST),
                format!("fleet track {device}"),
                format!("fleet logs {device} --follow"),
            ]);
        }
        lines
    }
}
