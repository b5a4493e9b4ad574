//! Wasm services and plugins that misbehave next to a device that is idle: their effect on `GET /ping`.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;
use tests::{GUEST_CAPABILITIES, guest, guest_plugin};

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

/// The simultaneous calls of a plugin that spins, and how long each of them may do so.
const CALLS: usize = 16;
const CPU_MILLIS: u64 = 1000;
/// The pause after a call that was refused, so that its client does not spin as well.
const REFUSED_AGAIN: Duration = Duration::from_millis(10);

/// The p99 of `GET /ping` in each round, without the neighbour and beside it.
#[derive(Default)]
struct Rounds {
    alone: Vec<Duration>,
    beside: Vec<Duration>,
    ratios: Vec<f64>,
}

impl Rounds {
    fn add(&mut self, alone: Duration, beside: Duration) {
        self.ratios.push(ratio(beside, alone));
        self.alone.push(alone);
        self.beside.push(beside);
    }

    fn show(self, section: &mut Section, neighbour: &str) {
        section.add(
            format!("/ping p99 beside {neighbour}"),
            format!(
                "{:.2} times ({})",
                median(self.ratios),
                micros(Latencies::new(self.beside).p50())
            ),
            format!("alone {}", micros(Latencies::new(self.alone).p50())),
            "2 times",
        );
    }
}

pub(crate) async fn measure() -> Result<Section> {
    let mut section = Section::new("Wasm services and plugins that misbehave");
    for (what, word) in NEIGHBOURS {
        let mut device = Device::new(&["--engine", "wasm"])?;
        device.start().await?;
        let image = file_image(&guest("guest"));
        let neighbour = target(&[(
            "neighbour",
            &image,
            serde_json::json!({ "mem_limit": "64m", "command": [word] }),
        )]);
        let mut rounds = Rounds::default();
        for _ in 0..ROUNDS {
            let alone = p99_of_ping(&device).await?;
            device.set_target(&neighbour).await?;
            tokio::time::sleep(SETTLE).await;
            let beside = p99_of_ping(&device).await?;
            device.set_target(&empty_target()).await?;
            device.until_running(0).await?;
            rounds.add(alone, beside);
        }
        rounds.show(&mut section, &format!("a service that {what}"));
        device.clean_up().await?;
    }
    calls_of_a_plugin(&mut section).await?;
    section.note(format!(
        "One connection, one request at a time, for {} s without and {} s with the neighbour, {ROUNDS} times \
         in turn: medians of the rounds' p99, and of their ratios. Each call of the plugin may use {CPU_MILLIS} ms of \
         the processor, and its client calls again as soon as it was ended.",
        TIME.as_secs(),
        TIME.as_secs()
    ));
    Ok(section)
}

async fn p99_of_ping(device: &Device) -> Result<Duration> {
    let load = load(device.address, "/ping", 1, TIME).await?;
    Ok(load.latencies.p99())
}

async fn calls_of_a_plugin(section: &mut Section) -> Result<()> {
    let (mut device, _folder) = device_with_a_plugin_that_spins()?;
    device.start().await?;
    device.until_answers("/v3/spins/hello").await?;
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        let alone = p99_of_ping(&device).await?;
        let key = device.key()?;
        let url = format!("http://{}/v3/spins/spin?apikey={key}", device.address);
        let calls = (0..CALLS).map(|_| call_again_and_again(tests::client(), url.clone()));
        let calls: Vec<_> = calls.map(tokio::spawn).collect();
        tokio::time::sleep(SETTLE).await;
        let beside = p99_of_ping(&device).await?;
        for call in calls {
            call.abort();
        }
        device.until_answers("/v3/spins/hello").await?;
        rounds.add(alone, beside);
    }
    rounds.show(section, &format!("{CALLS} calls of a plugin that spin"));
    device.clean_up().await
}

async fn call_again_and_again(client: reqwest::Client, url: String) {
    loop {
        // Each is ended with a 504, or refused with a 503 while there is no room for it.
        let answer = client.get(&url).send().await;
        if answer.is_ok_and(|answer| answer.status() == reqwest::StatusCode::SERVICE_UNAVAILABLE) {
            tokio::time::sleep(REFUSED_AGAIN).await;
        }
    }
}

/// Returns a device with the test component as a plugin, and the folder of its file and policy.
fn device_with_a_plugin_that_spins() -> Result<(Device, TempDir)> {
    let component = guest_plugin(
        &fs::read(guest("plugin_guests"))?,
        "name = \"spins\"\nversion = \"1.0.0\"\n",
        &format!(
            "[limits]\ncpu_ms = {CPU_MILLIS}\n[[routes]]\nmethod = \"GET\"\npath = \"/v3/spins/:what\"\n"
        ),
    );
    let policy = format!(
        "[plugins.spins]\nsha256 = [\"{}\"]\ngrants = {GUEST_CAPABILITIES:?}\nroutes = [\"/v3/spins/*\"]\n",
        compiled_code::digest(&component)
    );
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("plugins"))?;
    fs::write(path("plugins/spins.wasm"), component)?;
    fs::write(path("policy.toml"), policy)?;
    let mut device = Device::new(&["--engine", "wasm"])?;
    device.argument(format!("--plugin-dir={}", path("plugins").display()));
    device.argument(format!("--policy={}", path("policy.toml").display()));
    Ok((device, folder))
}
