//! Read endpoints of the core and of plugins under load, compared with a bare axum server in this process; and the
//! memory of the supervisor before and after.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::routing::get;
use tests::guest;
use tokio::net::TcpListener;

use crate::device::{Device, file_image, target};
use crate::figures::{Section, mebibytes, micros};
use crate::http_load::load;
use crate::process::memory;

/// Enough to keep two cores busy without measuring a queue.
const CONNECTIONS: usize = 8;
const SECONDS: u64 = 4;
/// The variable that overrides it, for a quick check that everything works.
const SECONDS_VARIABLE: &str = "SUPERVISOR_BENCH_SECONDS";
/// Paths, and how many requests a second the reference system answers on such a machine.
const ENDPOINTS: [(&str, Option<u32>); 10] = [
    ("/ping", Some(3500)),
    ("/v1/device", Some(283)),
    ("/v2/applications/state", Some(171)),
    ("/v2/state/status", None),
    ("/v3/plan", None),
    ("/metrics", None),
    // Endpoints of plugins. Tags are missing, because they come from the cloud, which this device does not have.
    ("/v2/device/name", None),
    ("/v2/local/device-info", None),
    ("/v2/device/vpn", None),
    ("/v1/device/host-config", None),
];

pub(crate) async fn measure() -> Result<Section> {
    let mut section = Section::new("Requests a second");
    let bare = bare_server().await?;
    let mut device = Device::new(&["--engine", "wasm"])?;
    device.start().await?;
    let server = file_image(&guest("hello-server"));
    let client = file_image(&guest("hello-client"));
    device
        .set_target(&target(&[
            ("server", &server, serde_json::json!({})),
            ("client", &client, serde_json::json!({})),
        ]))
        .await?;
    device.until_running(2).await?;
    let key = device.key()?;
    let time = match std::env::var(SECONDS_VARIABLE) {
        Ok(text) => Duration::from_secs(text.parse().context(SECONDS_VARIABLE)?),
        Err(_) => Duration::from_secs(SECONDS),
    };

    let before = memory(device.pid()?)?;
    for (path, reference) in ENDPOINTS {
        let beside = load(bare, "/ping", CONNECTIONS, time).await?;
        let path_with_key = format!("{path}?apikey={key}");
        let ours = load(device.address, &path_with_key, CONNECTIONS, time)
            .await
            .with_context(|| format!("failed to load `{path}`"))?;
        section.add(
            format!("GET {path}"),
            format!(
                "{:.0}/s, p99 {}",
                ours.per_second,
                micros(ours.latencies.p99())
            ),
            format!(
                "bare axum {:.0}/s, p99 {} (ours is {:.2} of it)",
                beside.per_second,
                micros(beside.latencies.p99()),
                ours.per_second / beside.per_second
            ),
            reference.map_or_else(String::new, |reference| {
                format!("the reference system: {reference}/s")
            }),
        );
    }
    let after = memory(device.pid()?)?;
    section.add(
        "resident memory of the supervisor after all of that",
        format!(
            "{} ({} of it anonymous; peak {})",
            mebibytes(after.resident),
            mebibytes(after.anonymous),
            mebibytes(after.peak)
        ),
        format!(
            "before: {} ({} of it anonymous)",
            mebibytes(before.resident),
            mebibytes(before.anonymous)
        ),
        "10 MiB more",
    );
    section.note(format!(
        "{CONNECTIONS} keep-alive connections with one request under way each, for {} s, from a client \
         on the same two processors. The bare server answers `OK` to everything.",
        time.as_secs()
    ));
    device.clean_up().await?;
    Ok(section)
}

async fn bare_server() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/ping", get(|| async { "OK" }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}
