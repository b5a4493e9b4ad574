//! The machine's own Docker engine for the tests, if a private one is not possible.
//!
//! The engine belongs to somebody, and contains other things. The tests use a registry of ours in it, in a container;
//! everything that they run there is derived from the image in that registry and has its label. The label identifies
//! what is removed at the end, together with everything that has the same device's uuid. Nothing else is removed.

use std::collections::{HashMap, HashSet};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig, PortBinding};
use bollard::query_parameters::{
    CreateContainerOptions, ListContainersOptionsBuilder, ListImagesOptionsBuilder,
    ListNetworksOptions, ListVolumesOptions, RemoveImageOptionsBuilder, RemoveVolumeOptions,
    StartContainerOptions,
};
use held_port::HeldPort;

use crate::busybox::REGISTRY_LABEL;
use crate::docker_images::{self, remove_containers};
use crate::interrupted::{clean_up_when_interrupted, runtime};
use crate::private_docker::answers;
use crate::{busybox, docker_address, processes};

/// The registry's image, which is pulled from Docker Hub if the engine does not have it.
const IMAGE: &str = "registry:2";
/// The port in its container.
const PORT: &str = "5000/tcp";
/// The time limit for pulling the image.
const PULL_TIMEOUT: Duration = Duration::from_secs(120);
/// The time limit from the start of the registry to its first answer.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The label on the registry's container, in addition to its address: the process that started it.
const OWNER: &str = "io.platform.xtask.owner";
/// The label on everything that a supervisor creates: the device that it belongs to.
const DEVICE: &str = "io.platform.device-uuid";
/// The network that all devices of an engine share and none removes.
const SHARED_NETWORK: &str = "supervisor0";

/// A registry in the machine's own engine. Dropping this value removes the registry and everything that the tests left.
pub(crate) struct ReachableDocker {
    engine: String,
    registry: String,
    keep: KeptObjects,
}

/// Things that existed before and must be kept.
#[derive(Clone, Copy, Default)]
struct KeptObjects {
    shared_network: bool,
    image: bool,
}

impl ReachableDocker {
    /// Finds the engine that `docker` itself would use, and starts the registry in it. The registry then contains
    /// `busybox:latest`.
    ///
    /// # Errors
    /// What is missing; the suites are skipped then.
    pub(crate) fn start() -> Result<Self> {
        let engine = docker_address::address();
        if !engine.starts_with("unix://") {
            bail!("the engine at {engine} is not one of this machine's");
        }
        let runtime = runtime()?;
        let docker = runtime.block_on(docker_address::connect(&engine))?;
        runtime.block_on(after_dead_owners(&docker));
        let reachable = ReachableDocker {
            registry: HeldPort::new()?.keep().to_string(),
            keep: runtime.block_on(before(&docker)),
            engine,
        };
        let (engine, registry) = (reachable.engine.clone(), reachable.registry.clone());
        let keep = reachable.keep;
        clean_up_when_interrupted(move || clean_up(&engine, &registry, keep));
        runtime.block_on(reachable.start_registry(&docker))?;
        reachable.until_it_answers()?;
        busybox::push(&reachable.engine, &reachable.registry)?;
        Ok(reachable)
    }

    /// Returns the value of `SUPERVISOR_TEST_DOCKER`.
    pub(crate) fn docker_uri(&self) -> &str {
        &self.engine
    }

    /// Returns the value of `SUPERVISOR_TEST_REGISTRY`: `127.0.0.1:PORT`, plain HTTP, which engines accept there.
    pub(crate) fn registry(&self) -> &str {
        &self.registry
    }

    async fn start_registry(&self, docker: &Docker) -> Result<()> {
        if !self.keep.image {
            println!("pulling {IMAGE} for the Docker tests");
            let pulled = docker_images::pull(docker, IMAGE);
            let pulled = tokio::time::timeout(PULL_TIMEOUT, pulled).await;
            pulled
                .unwrap_or_else(|_| bail!("it took longer than {PULL_TIMEOUT:?}"))
                .with_context(|| {
                    format!("the engine has no image `{IMAGE}`, and cannot pull it")
                })?;
        }
        let port = self.registry.rsplit(':').next().map(str::to_owned);
        let binding = PortBinding {
            host_ip: Some("127.0.0.1".into()),
            host_port: port,
        };
        let body = ContainerCreateBody {
            image: Some(IMAGE.into()),
            env: Some(vec!["REGISTRY_STORAGE_DELETE_ENABLED=true".into()]),
            labels: Some(HashMap::from([
                (OWNER.into(), std::process::id().to_string()),
                (REGISTRY_LABEL.into(), self.registry.clone()),
            ])),
            exposed_ports: Some(vec![PORT.into()]),
            host_config: Some(HostConfig {
                port_bindings: Some(HashMap::from([(PORT.into(), Some(vec![binding]))])),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let made = docker
            .create_container(None::<CreateContainerOptions>, body)
            .await
            .context("failed to create the registry's container")?;
        docker
            .start_container(&made.id, None::<StartContainerOptions>)
            .await
            .context("failed to start the registry's container")
    }

    fn until_it_answers(&self) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        let is_ready = || answers(&mut TcpStream::connect(&self.registry).ok()?, "/v2/");
        while is_ready().is_none() {
            if Instant::now() > deadline {
                bail!("the registry did not answer on {}", self.registry);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for ReachableDocker {
    fn drop(&mut self) {
        clean_up(&self.engine, &self.registry, self.keep);
    }
}

async fn before(docker: &Docker) -> KeptObjects {
    let networks = docker.list_networks(None::<ListNetworksOptions>).await;
    KeptObjects {
        shared_network: networks
            .unwrap_or_default()
            .iter()
            .any(|network| network.name.as_deref() == Some(SHARED_NETWORK)),
        image: docker.inspect_image(IMAGE).await.is_ok(),
    }
}

fn clean_up(engine: &str, registry: &str, keep: KeptObjects) {
    let Ok(runtime) = runtime() else { return };
    runtime.block_on(async {
        match docker_address::connect(engine).await {
            Ok(docker) => remove_what_came_from(&docker, registry, keep).await,
            Err(error) => eprintln!("failed to clean up after the tests: {error:#}"),
        }
    });
}

/// Removes what earlier runs left whose process was killed.
async fn after_dead_owners(docker: &Docker) {
    let filters = HashMap::from([("label", vec![OWNER])]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let registries = docker.list_containers(Some(options)).await;
    for registry in registries.unwrap_or_default() {
        let labels = registry.labels.unwrap_or_default();
        let owner = labels.get(OWNER).and_then(|owner| owner.parse().ok());
        let (Some(owner), Some(address)) =
            (owner.and_then(processes::pid), labels.get(REGISTRY_LABEL))
        else {
            continue;
        };
        if !processes::is_xtask(owner) {
            println!("cleaning up after an earlier run of the tests in the Docker engine");
            // It is no longer known whether the shared network and the image existed before.
            let keep = KeptObjects {
                shared_network: true,
                image: true,
            };
            remove_what_came_from(docker, address, keep).await;
        }
    }
}

/// Removes the registry at `registry`, the containers and images that came from it, and everything that belongs to the
/// devices of those containers.
async fn remove_what_came_from(docker: &Docker, registry: &str, keep: KeptObjects) {
    let label = format!("{REGISTRY_LABEL}={registry}");
    let labelled = HashMap::from([("label", vec![label.as_str()])]);
    let mut devices = HashSet::new();
    let all = ListContainersOptionsBuilder::new().all(true);
    for (container, removed) in remove_containers(docker, all.filters(&labelled).build()).await {
        devices.extend(container.labels.unwrap_or_default().remove(DEVICE));
        complain(removed);
    }
    let is_ours = |labels: &HashMap<String, String>| {
        labels
            .get(DEVICE)
            .is_some_and(|device| devices.contains(device))
    };
    let networks = docker.list_networks(None::<ListNetworksOptions>).await;
    for network in networks.unwrap_or_default() {
        let name = network.name.unwrap_or_default();
        let shared = name == SHARED_NETWORK && !keep.shared_network;
        if shared || is_ours(&network.labels.unwrap_or_default()) {
            complain(docker.remove_network(&network.id.unwrap_or_default()).await);
        }
    }
    let volumes = docker.list_volumes(None::<ListVolumesOptions>).await;
    let volumes = volumes.ok().and_then(|list| list.volumes);
    for volume in volumes.unwrap_or_default() {
        if is_ours(&volume.labels) {
            let removed = docker.remove_volume(&volume.name, None::<RemoveVolumeOptions>);
            complain(removed.await);
        }
    }
    let options = ListImagesOptionsBuilder::new().filters(&labelled).build();
    let images = docker.list_images(Some(options)).await;
    let mut names: Vec<String> = images
        .unwrap_or_default()
        .into_iter()
        .map(|image| image.id)
        .collect();
    if !keep.image {
        names.push(IMAGE.to_owned());
    }
    let by_force = RemoveImageOptionsBuilder::new().force(true).build();
    for name in names {
        // It may have been removed together with another one.
        let _ = docker
            .remove_image(&name, Some(by_force.clone()), None)
            .await;
    }
}

fn complain(done: Result<(), bollard::errors::Error>) {
    if let Err(error) = done {
        eprintln!("failed to clean up after the tests: {error}");
    }
}
