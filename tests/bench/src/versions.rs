//! This version of the device compared with another one, whose layout `--beside` names: both run at the same time, and
//! each figure is measured alternately.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use tests::{distribution, guest};

use crate::device::{Device, empty_target, file_image, target};
use crate::figures::{Section, mebibytes, median, micros, millis};
use crate::http_load::{load, paced_load};
use crate::process::memory;

const ROUNDS: usize = 7;
const CONNECTIONS: usize = 8;
const TIME: Duration = Duration::from_secs(2);
/// The pause between two calls, so that the remaining work of a call is not measured with the next one.
const PAUSE: Duration = Duration::from_micros(400);
/// Longer than any background work of a start.
const SETTLE: Duration = Duration::from_secs(15);
const ENDPOINTS: [(&str, &str); 3] = [
    ("/ping", "0.90"),
    ("/v1/device", "0.95"),
    ("/v2/device/name", "0.95, the second wall aside"),
];
const PROGRAMS: [&str; 2] = ["supervisor", "supervisor-wasm"];

/// A value of this version and of the other one.
struct Pair<T> {
    this: T,
    other: T,
}

pub(crate) async fn measure(beside: &Path) -> Result<Section> {
    let mut section = Section::new("This version beside another one");
    let devices = Pair {
        this: started(&distribution()).await?,
        other: started(beside).await?,
    };
    tokio::time::sleep(SETTLE).await;
    memories(&mut section, "idle, all plugins", &devices)?;
    for (path, aim) in ENDPOINTS {
        requests_a_second(&mut section, path, aim, &devices).await?;
    }
    plugin_calls(&mut section, &devices).await?;
    memories(&mut section, "after all of that", &devices)?;
    service_starts(&mut section, &devices).await?;
    for program in PROGRAMS {
        let size = |layout: &Path| {
            let program = std::fs::metadata(layout.join("bin").join(program));
            program.map_or_else(|_| "none".to_owned(), |file| mebibytes(file.len()))
        };
        let name = format!("`{program}`, stripped");
        section.add(name, size(&distribution()), size(beside), "");
    }
    section.note(format!(
        "{ROUNDS} rounds, each of both versions in turn; medians of the rounds, and of their ratios. Requests a second \
         are those of {CONNECTIONS} keep-alive connections in {} s.",
        TIME.as_secs()
    ));
    devices.this.clean_up().await?;
    devices.other.clean_up().await?;
    Ok(section)
}

/// Starts a device of a layout, with its plugins from the cache.
async fn started(layout: &Path) -> Result<Device> {
    let mut device = Device::from_layout(layout, &["--engine", "wasm"])?;
    device.start().await?;
    device.until_plugins_answer().await?;
    device.stop().await?;
    device.start().await?;
    device.until_plugins_answer().await?;
    Ok(device)
}

async fn requests_a_second(
    section: &mut Section,
    path: &str,
    aim: &str,
    devices: &Pair<Device>,
) -> Result<()> {
    let mut rates = Pair {
        this: Vec::new(),
        other: Vec::new(),
    };
    for _ in 0..ROUNDS {
        for (device, rates) in [
            (&devices.this, &mut rates.this),
            (&devices.other, &mut rates.other),
        ] {
            let path = format!("{path}?apikey={}", device.key()?);
            let load = load(device.address, &path, CONNECTIONS, TIME).await?;
            rates.push(load.per_second);
        }
    }
    let ratios = rates.this.iter().zip(&rates.other).map(|(a, b)| a / b);
    section.add(
        format!("GET {path}"),
        format!(
            "{:.2} times ({:.0}/s)",
            median(ratios.collect()),
            median(rates.this.clone())
        ),
        format!("{:.0}/s", median(rates.other)),
        aim,
    );
    Ok(())
}

async fn plugin_calls(section: &mut Section, devices: &Pair<Device>) -> Result<()> {
    let mut medians = Pair {
        this: Vec::new(),
        other: Vec::new(),
    };
    for _ in 0..ROUNDS {
        for (device, medians) in [
            (&devices.this, &mut medians.this),
            (&devices.other, &mut medians.other),
        ] {
            let path = format!("/v2/device/name?apikey={}", device.key()?);
            let load = paced_load(device.address, &path, 1, TIME, PAUSE).await?;
            medians.push(load.latencies.p50().as_secs_f64());
        }
    }
    let p50 = |medians| micros(Duration::from_secs_f64(median(medians)));
    section.add(
        "a call of a plugin over one connection, p50",
        p50(medians.this),
        p50(medians.other),
        "the second wall: 40 us more",
    );
    Ok(())
}

/// Measures the time from the target with a service until that runs.
async fn service_starts(section: &mut Section, devices: &Pair<Device>) -> Result<()> {
    let server = file_image(&guest("hello-server"));
    let with_service = target(&[("server", &server, json!({}))]);
    let mut times = Pair {
        this: Vec::new(),
        other: Vec::new(),
    };
    let mut memory_of_service = Pair {
        this: String::new(),
        other: String::new(),
    };
    // The first round compiles it.
    for round in 0..=ROUNDS {
        for (device, times, service) in [
            (&devices.this, &mut times.this, &mut memory_of_service.this),
            (
                &devices.other,
                &mut times.other,
                &mut memory_of_service.other,
            ),
        ] {
            let begin = Instant::now();
            device.set_target(&with_service).await?;
            device.until_running(1).await?;
            if round > 0 {
                times.push(begin.elapsed().as_secs_f64());
            }
            for pid in tests::services_of(&device.state()) {
                let memory = memory(u32::try_from(pid)?)?;
                *service = format!(
                    "{} ({} of it anonymous)",
                    mebibytes(memory.resident),
                    mebibytes(memory.anonymous)
                );
            }
            device.set_target(&empty_target()).await?;
            device.until_settled().await?;
        }
    }
    let ratios = times.this.iter().zip(&times.other).map(|(a, b)| a / b);
    let ratio = median(ratios.collect());
    let time = |times| millis(Duration::from_secs_f64(median(times)));
    section.add(
        "a wasm service's start, from the target that has it",
        format!("{ratio:.2} times ({})", time(times.this)),
        time(times.other),
        "1.05 times",
    );
    section.add(
        "resident memory of one wasm service's process",
        memory_of_service.this,
        memory_of_service.other,
        "no more",
    );
    Ok(())
}

/// Adds the supervisor's memory, and that of its plugin process if it has one.
fn memories(section: &mut Section, when: &str, devices: &Pair<Device>) -> Result<()> {
    let whole = |device: &Device| -> Result<String> {
        let mut parts = Vec::new();
        let (mut resident, mut anonymous) = (0, 0);
        for pid in [Some(device.pid()?), device.plugin_worker()?]
            .into_iter()
            .flatten()
        {
            let memory = memory(pid)?;
            resident += memory.resident;
            anonymous += memory.anonymous;
            parts.push(mebibytes(memory.resident));
        }
        Ok(format!(
            "{} ({} of it anonymous) in {}",
            mebibytes(resident),
            mebibytes(anonymous),
            parts.join(" and ")
        ))
    };
    section.add(
        format!("resident memory, {when}"),
        whole(&devices.this)?,
        whole(&devices.other)?,
        "no more than before the second wall",
    );
    Ok(())
}
