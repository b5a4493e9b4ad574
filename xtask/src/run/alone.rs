//! `cargo xtask run --local`: one device in local mode, with the sample as its local target.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;

use super::device::Device;
use super::engine_choice::Engine;
use super::samples::Samples;
use super::traces::Traces;
use super::{describe_board, say};
use crate::layout::Layout;

/// Starts the device and stays as long as it runs.
pub(super) async fn serve(
    layout: &Layout,
    listen: SocketAddr,
    traces: &Traces,
    samples: Option<&Samples>,
    owner: &str,
    device: &mut Option<Device>,
) -> Result<()> {
    describe_board(&traces.kept.host_root())?;
    if let (Some(samples), Engine::Docker(address)) = (samples, &traces.engine) {
        samples.import(address, owner).await?;
    }
    let device = device.insert(Device::start(layout, listen, traces)?);
    device
        .until_it_answers(layout, &traces.kept.device())
        .await?;
    if let Some(samples) = samples {
        device.set_target(&samples.target(owner)).await?;
    }
    device.until_plugins_are_loaded().await?;
    let services_run = device.services_run().await?;
    introduce(device, traces, services_run);
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        device.must_run()?;
    }
}

fn introduce(device: &Device, traces: &Traces, services_run: bool) {
    if !services_run {
        say("\nnot all services are running yet; the log says why");
    }
    say(&format!(
        "\nthe device answers on {}\n\
         API key: {}\n\
         state:   {}\n\n\
         try:\n\
         \x20 curl '{}'\n\
         \x20 curl -N '{}'\n\
         \x20 curl '{}'\n\n\
         Ctrl-C stops it",
        device.base,
        device.key,
        traces.kept.device().display(),
        device.url("/v2/applications/state"),
        device.url("/v2/local/logs"),
        device.url("/v2/local/device-info"),
    ));
}
