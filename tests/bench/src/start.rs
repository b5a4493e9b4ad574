//! Cold start, resident memory and the size of the program.

use std::time::Duration;

use anyhow::Result;
use tests::{distribution, guest, services_of};

use crate::device::{Device, file_image, target};
use crate::figures::{Latencies, Section, mebibytes, millis};
use crate::process::memory;

const STARTS: usize = 20;
/// Longer than any background work of a start, until the memory that it has left in the heap is returned.
const SETTLE: Duration = Duration::from_secs(8);

pub(crate) async fn measure() -> Result<Section> {
    let mut section = Section::new("Start, memory and size");
    let mut device = Device::new(&["--engine", "wasm"])?;
    // The first start compiles the plugins.
    let first = device.start().await?;
    device.until_plugins_answer().await?;
    device.stop().await?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(device.start().await?);
        device.stop().await?;
    }
    let starts = Latencies::new(starts);
    section.add(
        "start to the first 200 on /ping, plugins from the cache",
        format!(
            "median {}, worst {}",
            millis(starts.p50()),
            millis(starts.percentile(100))
        ),
        format!("the very first start: {}", millis(first)),
        "30 ms (the reference system: 640)",
    );

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
    tokio::time::sleep(SETTLE).await;
    let supervisor = memory(device.pid()?)?;
    section.add(
        "resident memory of the supervisor, idle, all plugins, two wasm services",
        format!(
            "{} ({} of it anonymous; peak {})",
            mebibytes(supervisor.resident),
            mebibytes(supervisor.anonymous),
            mebibytes(supervisor.peak)
        ),
        "",
        "15 MiB (the reference system: 120)",
    );
    if let Some(worker) = device.plugin_worker()? {
        let worker = memory(worker)?;
        section.add(
            "resident memory of the process that runs plugins",
            format!(
                "{} ({} of it anonymous)",
                mebibytes(worker.resident),
                mebibytes(worker.anonymous)
            ),
            "",
            "24 MiB with the supervisor",
        );
    }
    for pid in services_of(&device.state()) {
        let service = memory(u32::try_from(pid)?)?;
        section.add(
            "resident memory of one wasm service's process",
            format!(
                "{} ({} of it anonymous)",
                mebibytes(service.resident),
                mebibytes(service.anonymous)
            ),
            "",
            "",
        );
    }
    device.clean_up().await?;

    for program in ["supervisor", "supervisor-wasm", "supervisor-compile"] {
        let size = std::fs::metadata(distribution().join("bin").join(program))?.len();
        let aim = if program == "supervisor" { "8 MiB" } else { "" };
        section.add(format!("`{program}`, stripped"), mebibytes(size), "", aim);
    }
    Ok(section)
}
