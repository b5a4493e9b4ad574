//! Wasm services that misbehave, beside a device that is idle: what `GET /ping` notices of them.

use std::time::Duration;

use anyhow::Result;
use tests::guest;

use crate::device::{Device, file_image, target};
use crate::figures::{Section, micros, ratio};
use crate::http_load::load;

const TIME: Duration = Duration::from_secs(5);
/// What each does, and the word that tells the test component to.
const NEIGHBOURS: [(&str, &str); 3] = [
    ("spins", "spin"),
    ("fills memory", "fill-memory"),
    ("floods its output", "flood"),
];

pub(crate) async fn measure() -> Result<Section> {
    let mut section = Section::new("Wasm services that misbehave");
    for (what, word) in NEIGHBOURS {
        let mut device = Device::new(&["--engine", "wasm"])?;
        device.start().await?;
        let alone = load(device.address, "/ping", 1, TIME).await?;
        let image = file_image(&guest("guest"));
        device
            .set_target(&target(&[(
                "neighbour",
                &image,
                serde_json::json!({ "mem_limit": "64m", "command": [word] }),
            )]))
            .await?;
        // It may fail again and again, which is part of what is measured.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let beside = load(device.address, "/ping", 1, TIME).await?;
        section.add(
            format!("/ping p99 beside one that {what}"),
            format!(
                "{} ({:.2} times)",
                micros(beside.latencies.p99()),
                ratio(beside.latencies.p99(), alone.latencies.p99())
            ),
            format!("alone {}", micros(alone.latencies.p99())),
            "2 times",
        );
        device.clean_up().await?;
    }
    section.note(format!(
        "One connection, one request at a time, for {} s before and while the service runs.",
        TIME.as_secs()
    ));
    Ok(section)
}
