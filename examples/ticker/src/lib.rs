//! Bodies that arrive and leave in pieces: `GET /v3/ticks` counts for as long as its caller
//! listens, and `POST /v3/shout` answers in capitals while its request is still arriving.

use std::time::Duration;

use serde::Deserialize;
use supervisor_sdk::{Body, Query, Response, plugin, timer};

plugin! {
    routes: {
        GET "/v3/ticks" => ticks,
        POST "/v3/shout" => shout,
    }
    limits: { wall_ms: 30000, body_kib: 4096 }
}

#[derive(Deserialize)]
struct Ticks {
    /// The number of ticks; endless if missing.
    count: Option<u32>,
    /// Milliseconds between ticks.
    #[serde(default = "a_second")]
    every_ms: u32,
}

fn a_second() -> u32 {
    1000
}

async fn ticks(Query(ticks): Query<Ticks>) -> Response {
    Response::stream(Response::TEXT, async move |out| {
        for tick in 1..=ticks.count.unwrap_or(u32::MAX) {
            if tick > 1 {
                timer::sleep(Duration::from_millis(ticks.every_ms.into())).await;
            }
            // An error means that the caller has disconnected: there is nobody to count for.
            if out.write(format!("tick {tick}\n")).await.is_err() {
                return;
            }
        }
    })
}

async fn shout(mut text: Body) -> Response {
    Response::stream(Response::TEXT, async move |out| {
        while let Some(mut chunk) = text.chunk().await {
            chunk.make_ascii_uppercase();
            if out.write(chunk).await.is_err() {
                return;
            }
        }
    })
}
