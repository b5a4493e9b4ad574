//! A target of two services on Docker, from POST to both running, compared with bare engine calls that create the same
//! objects in parallel.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig, NetworkCreateRequest};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, CreateImageOptionsBuilder, RemoveContainerOptionsBuilder,
    StartContainerOptions,
};
use futures::TryStreamExt;
use serde_json::json;

use crate::device::{Device, empty_target, target};
use crate::figures::{Latencies, Section, median, millis, ratio};

const ROUNDS: usize = 25;
/// Time for the engine to clean up after it has answered that a container is removed.
const TIDY_UP: Duration = Duration::from_millis(300);
const NAMES: [&str; 2] = ["one", "two"];

/// Returns `None` if there is no Docker engine for tests.
pub(crate) async fn measure() -> Result<Option<Section>> {
    let (Ok(uri), Ok(registry)) = (
        std::env::var("SUPERVISOR_TEST_DOCKER"),
        std::env::var("SUPERVISOR_TEST_REGISTRY"),
    ) else {
        return Ok(None);
    };
    let image = format!("{registry}/busybox:latest");
    let docker = Docker::connect_with_host(&uri)?.negotiate_version().await?;
    let (name, tag) = image.rsplit_once(':').context("the image has a tag")?;
    let pull = CreateImageOptionsBuilder::default()
        .from_image(name)
        .tag(tag)
        .build();
    docker
        .create_image(Some(pull), None, None)
        .try_for_each(|_| async { Ok(()) })
        .await?;

    let mut device = Device::new(&["--engine", "docker"])?;
    device.argument("--docker-host");
    device.argument(uri);
    device.start().await?;
    device.key()?;
    let command = json!({ "command": ["sleep", "infinity"], "stop_signal": "SIGKILL" });
    let target_state = target(&[
        (NAMES[0], &image, command.clone()),
        (NAMES[1], &image, command),
    ]);

    let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The order alternates; each begins once the engine has cleaned up after the other.
        let mut alone = Duration::ZERO;
        if round % 2 == 0 {
            alone = bare_calls(&docker, &image).await?;
            tokio::time::sleep(TIDY_UP).await;
        }
        let begin = Instant::now();
        device.set_target(&target_state).await?;
        device.until_running(NAMES.len()).await?;
        let with_supervisor = begin.elapsed();
        device.set_target(&empty_target()).await?;
        device.until_settled().await?;
        tokio::time::sleep(TIDY_UP).await;
        if round % 2 == 1 {
            alone = bare_calls(&docker, &image).await?;
            tokio::time::sleep(TIDY_UP).await;
        }
        // The first round warms caches of the engine.
        if round > 0 {
            ours.push(with_supervisor);
            bare.push(alone);
            ratios.push(ratio(with_supervisor, alone));
        }
    }
    device.clean_up().await?;
    let (ours, bare) = (Latencies::new(ours), Latencies::new(bare));
    let mut section = Section::new("A target of two services on Docker");
    section.add(
        "POST to both running",
        format!(
            "median {}, {:.2} times the bare calls",
            millis(ours.p50()),
            median(ratios)
        ),
        format!(
            "bare engine calls in parallel: median {}",
            millis(bare.p50())
        ),
        "1.05 times (the reference system: 4)",
    );
    section.note(format!(
        "{} pairs in turn, each of a network, and two containers made and started; images are there. \
         The ratio is the median of the pairs' ratios.",
        ROUNDS - 1
    ));
    Ok(Some(section))
}

async fn bare_calls(docker: &Docker, image: &str) -> Result<Duration> {
    let begin = Instant::now();
    let network = NetworkCreateRequest {
        name: "bench-bare".into(),
        ..Default::default()
    };
    docker.create_network(network).await?;
    let [first, second] = NAMES.map(|name| run(docker, image, name));
    let (first, second) = tokio::join!(first, second);
    let (first, second) = (first?, second?);
    let time = begin.elapsed();
    for id in [first, second] {
        let force = RemoveContainerOptionsBuilder::default().force(true).build();
        docker.remove_container(&id, Some(force)).await?;
    }
    docker.remove_network("bench-bare").await?;
    Ok(time)
}

async fn run(docker: &Docker, image: &str, name: &str) -> Result<String> {
    let options = CreateContainerOptionsBuilder::default()
        .name(&format!("bench-{name}"))
        .build();
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        cmd: Some(vec!["sleep".into(), "infinity".into()]),
        labels: Some(HashMap::new()),
        tty: Some(true),
        host_config: Some(HostConfig {
            network_mode: Some("bench-bare".into()),
            ..Default::default()
        }),
        ..Default::default()
    };
    let created = docker.create_container(Some(options), body).await?;
    docker
        .start_container(&created.id, None::<StartContainerOptions>)
        .await?;
    Ok(created.id)
}
