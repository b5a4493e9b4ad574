//! Wasm services that misbehave next to a device that is idle: their effect on `GET /ping`.

use std::time::Duration;

use anyhow::Result;
use tests::guest;

use crate::device::{Device, empty_target, file_image, target};
use crate::figures::{Latencies, Section, median, micros, ratio};
use crate::http_load::load;

/// The number of pairs of measurements, one without and one with the service.
const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_secs(2);
/// Time for the service to begin; it may fail again and again, which is part of the measurement.
const SETTLE: Duration = Duration::from_secs(1);
/// What each service does, and the word that makes the test component do it.
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
        let image = file_image(&guest("guest"));
        let neighbour = target(&[(
            "neighbour",
            &image,
            serde_json::json!({ "mem_limit": "64m", "command": [word] }),
        )]);
        let (mut alone, mut beside, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let quiet = load(device.address, "/ping", 1, TIME)
                .await?
                .latencies
                .p99();
            device.set_target(&neighbour).await?;
            tokio::time::sleep(SETTLE).await;
            let busy = load(device.address, "/ping", 1, TIME)
                .await?
                .latencies
                .p99();
            device.set_target(&empty_target()).await?;
            device.until_running(0).await?;
            ratios.push(ratio(busy, quiet));
            alone.push(quiet);
            beside.push(busy);
        }
        section.add(
            format!("/ping p99 beside one that {what}"),
            format!(
                "{:.2} times ({})",
                median(ratios),
                micros(Latencies::new(beside).p50())
            ),
            format!("alone {}", micros(Latencies::new(alone).p50())),
            "2 times",
        );
        device.clean_up().await?;
    }
    section.note(format!(
        "One connection, one request at a time, for {} s without and {} s with the service, {ROUNDS} times \
         in turn: medians of the rounds' p99, and of their ratios.",
        TIME.as_secs(),
        TIME.as_secs()
    ));
    Ok(section)
}
