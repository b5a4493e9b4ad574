//! Read endpoints under load, beside a bare axum server in this process.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::routing::get;
use tests::guest;
use tokio::net::TcpListener;

use crate::device::{Device, file_image, target};
use crate::figures::{Section, micros};
use crate::http_load::load;

/// Enough to keep two cores busy without measuring a queue.
const CONNECTIONS: usize = 8;
const TIME: Duration = Duration::from_secs(4);
/// What the reference system answers on such a machine, a second.
const REFERENCE: [(&str, &str, u32); 3] = [
    ("GET /ping", "/ping", 3500),
    ("GET /v1/device", "/v1/device", 283),
    ("GET /v2/applications/state", "/v2/applications/state", 171),
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

    for (what, path, reference) in REFERENCE {
        let beside = load(bare, "/ping", CONNECTIONS, TIME).await?;
        let ours = load(
            device.address,
            &format!("{path}?apikey={key}"),
            CONNECTIONS,
            TIME,
        )
        .await?;
        section.add(
            what,
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
            format!("the reference system: {reference}/s"),
        );
    }
    section.note(format!(
        "{CONNECTIONS} keep-alive connections with one request under way each, for {} s, from a client \
         on the same two processors. The bare server answers `OK` to everything.",
        TIME.as_secs()
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
