//! Measures what containers that do not run cost the wasm engine: creates, starts (each start is refused), stops,
//! renames and removes them, and prints the time of each operation at the beginning and at the end, when all exist.
//!
//! ```sh
//! cargo run --package engine --example many_containers -- \
//!     target/dist/bin/supervisor-compile target/wasm32-wasip2/wasm/guest.wasm 200
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use engine::wasm::{UserRange, Wasm, WasmConfig};
use engine::{
    ContainerSpec, Containers as _, Disk, Images as _, NetworkSpec, Networks as _, Ownership,
    VolumeSpec, Volumes as _,
};
use model::{
    Branding, ContainerId, EngineImageId, ImageRef, Mount, NetworkAttachment, NetworkConfig,
    NetworkMode, ServiceConfig, VolumeConfig,
};

#[path = "../tests/suite/service_config.rs"]
mod service_config;

use service_config::service_config;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let compiler = arguments
        .next()
        .context("the first argument is the compiler: `supervisor-compile`")?;
    let component = arguments
        .next()
        .context("the second argument is the component of the containers")?;
    let component = PathBuf::from(component).canonicalize()?;
    let count: usize = match arguments.next() {
        Some(count) => count.parse()?,
        None => 200,
    };
    if count < SAMPLE {
        bail!("{SAMPLE} containers at least");
    }
    let folder = tempfile::tempdir()?;
    let limits = compiled_code::Limits::default();
    let ownership = Ownership {
        device: "0123456789abcdef0123456789abcdef".parse()?,
        former: Vec::new(),
        exclusive: true,
        branding: Branding::default(),
    };
    let config = WasmConfig {
        folder: folder.path().join("wasm"),
        // No process serves a container, so each start is refused.
        runner: "/bin/false".into(),
        cache: compiled_code::Cache::new(
            folder.path().join("compiled"),
            std::path::absolute(compiler)?,
            limits,
        )?,
        api: None,
        host_root: folder.path().join("host"),
        disk: Disk::default(),
        users: UserRange::default(),
        requires_confinement: Arc::new(|| false),
    };
    let labels = [(ownership.branding.label("supervised"), String::new())];
    let wasm = Wasm::open(config, ownership).await?;
    let image: ImageRef = format!("file:{}", component.display()).parse()?;
    let image_id = wasm.pull_image(&image, None, &|_| {}).await?.id;
    let network = NetworkConfig {
        labels: labels.clone().into(),
        ..NetworkConfig::default()
    };
    let name = "front";
    let config = &network;
    wasm.create_network(&NetworkSpec { name, config }).await?;
    let volume = VolumeConfig {
        labels: labels.clone().into(),
        ..VolumeConfig::default()
    };
    let name = "data";
    let config = &volume;
    wasm.create_volume(&VolumeSpec { name, config }).await?;

    let service = ServiceConfig {
        command: None,
        labels: labels.into(),
        network_mode: NetworkMode::Network("front".to_owned()),
        networks: [("front".to_owned(), NetworkAttachment::default())].into(),
        mounts: vec![Mount::Volume {
            source: "data".to_owned(),
            target: "/data".to_owned(),
            read_only: false,
        }],
        ..service_config(image, Vec::new())
    };
    measure(&wasm, &service, &image_id, count).await
}

/// How many operations are measured at the beginning and at the end.
const SAMPLE: usize = 20;

async fn measure(
    wasm: &Wasm,
    service: &ServiceConfig,
    image_id: &EngineImageId,
    count: usize,
) -> Result<()> {
    println!(
        "| {count} containers | all | each of the first {SAMPLE} | each of the last {SAMPLE} |"
    );
    println!("|---|---|---|---|");
    let mut ids: Vec<ContainerId> = Vec::new();
    let mut times = Vec::new();
    for number in 0..count {
        let spec = ContainerSpec {
            name: &format!("service-{number}"),
            config: service,
            init_environment: &Default::default(),
            image_id,
            network_container: None,
        };
        let begin = Instant::now();
        ids.push(wasm.create_container(&spec).await?.id);
        times.push(begin.elapsed());
    }
    show("create", &times);
    let mut times = Vec::new();
    for id in &ids {
        let begin = Instant::now();
        if wasm.start_container(id).await.is_ok() {
            bail!("a container runs");
        }
        times.push(begin.elapsed());
    }
    show("start, refused", &times);
    let mut times = Vec::new();
    for id in &ids {
        let begin = Instant::now();
        wasm.stop_container(id, Duration::ZERO).await?;
        times.push(begin.elapsed());
    }
    show("stop", &times);
    let mut times = Vec::new();
    for (number, id) in ids.iter().enumerate() {
        let begin = Instant::now();
        wasm.rename_container(id, &format!("renamed-{number}"))
            .await?;
        times.push(begin.elapsed());
    }
    show("rename", &times);
    let mut times = Vec::new();
    for _ in 0..SAMPLE {
        let begin = Instant::now();
        wasm.containers().await?;
        times.push(begin.elapsed());
    }
    show("list all", &times);
    let mut times = Vec::new();
    for id in &ids {
        let begin = Instant::now();
        wasm.remove_container(id).await?;
        times.push(begin.elapsed());
    }
    show("remove", &times);
    Ok(())
}

fn show(what: &str, times: &[Duration]) {
    let mean = |times: &[Duration]| {
        let all: Duration = times.iter().sum();
        all.as_secs_f64() * 1000.0 / times.len().max(1) as f64
    };
    let all: Duration = times.iter().sum();
    let (first, last) = (&times[..SAMPLE], &times[times.len() - SAMPLE..]);
    println!(
        "| {what} | {:.2} s | {:.1} ms | {:.1} ms |",
        all.as_secs_f64(),
        mean(first),
        mean(last)
    );
}
