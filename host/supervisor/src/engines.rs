//! The choice of this device's engines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use compiled_code::Cache;
use engine::docker::Docker;
use engine::wasm::{Wasm, WasmConfig};
use engine::{Disk, Engine, Engines, Ownership};
use model::EngineKind;
use plugins::ConfinementRule;

use crate::configuration::Configuration;
use crate::settings::EngineChoice;

/// How long Docker may take to answer before a device with automatic choice continues without it.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Chooses the engines, and logs the choice with its reason. If Docker was chosen but does not
/// answer yet, it is tried again and again.
///
/// # Errors
/// If an engine cannot be set up at all.
pub(crate) async fn choose(
    configuration: &Configuration,
    ownership: Ownership,
    cache: Cache,
    rule: Arc<ConfinementRule>,
    addresses: &[SocketAddr],
) -> Result<Engines> {
    let wasm: Arc<dyn Engine> = Arc::new(
        open_wasm(configuration, ownership.clone(), cache, rule, addresses)
            .await
            .context("failed to open the wasm engine")?,
    );
    let uri = &configuration.docker_host;
    let docker = match configuration.engine {
        EngineChoice::Wasm => None,
        EngineChoice::Docker => Some(connect(configuration, ownership)?),
        EngineChoice::Auto => answering(configuration, ownership).await,
    };
    let engines: Vec<Arc<dyn Engine>> = match docker {
        Some(docker) => {
            tracing::info!(
                uri,
                "engines: docker at `{uri}`, and wasm ({})",
                reason(configuration.engine)
            );
            vec![Arc::new(docker), wasm]
        }
        None => {
            tracing::info!("engine: wasm ({})", reason(configuration.engine));
            vec![wasm]
        }
    };
    Ok(Engines::new(engines))
}

/// Returns the socket of the Docker that runs services here; `None` if there is none, or it is
/// reached over the network.
pub(crate) fn docker_socket(configuration: &Configuration, engines: &Engines) -> Option<String> {
    let socket = configuration.docker_host.strip_prefix("unix://")?;
    has_docker(engines).then(|| socket.to_owned())
}

/// Returns whether containers have their own networks here.
pub(crate) fn has_docker(engines: &Engines) -> bool {
    engines.get(EngineKind::Docker).is_some()
}

async fn open_wasm(
    configuration: &Configuration,
    ownership: Ownership,
    cache: Cache,
    rule: Arc<ConfinementRule>,
    addresses: &[SocketAddr],
) -> Result<Wasm> {
    let config = WasmConfig {
        folder: configuration.state_dir.join("wasm"),
        runner: configuration.wasm_program.clone(),
        cache,
        api: addresses.iter().find_map(on_loopback),
        host_root: configuration.host_root.clone(),
        disk: Disk::default(),
        users: configuration.service_users,
        requires_confinement: Arc::new(move || rule.is_required()),
    };
    Ok(Wasm::open(config, ownership).await?)
}

/// Returns the address as processes of this host reach it, if they can reach it over its loopback.
fn on_loopback(address: &SocketAddr) -> Option<SocketAddr> {
    let ip = address.ip();
    if ip.is_loopback() {
        return Some(*address);
    }
    ip.is_unspecified()
        .then(|| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port()))
}

fn reason(choice: EngineChoice) -> &'static str {
    match choice {
        EngineChoice::Auto => "chosen by whether the Docker socket answers",
        EngineChoice::Docker | EngineChoice::Wasm => "as configured",
    }
}

fn connect(configuration: &Configuration, ownership: Ownership) -> Result<Docker> {
    let uri = &configuration.docker_host;
    let docker = Docker::connect(uri, ownership)
        .with_context(|| format!("failed to use the Docker engine at `{uri}`"))?;
    Ok(docker.with_host_root(&configuration.host_root))
}

/// Returns Docker, if it exists and answers.
async fn answering(configuration: &Configuration, ownership: Ownership) -> Option<Docker> {
    let uri = &configuration.docker_host;
    let docker = connect(configuration, ownership)
        .inspect_err(|error| tracing::warn!("{error:#}"))
        .ok()?;
    match tokio::time::timeout(ANSWER_WITHIN, docker.info()).await {
        Ok(Ok(_)) => Some(docker),
        Ok(Err(error)) => {
            tracing::debug!(%error, uri, "no Docker engine answers");
            None
        }
        Err(_) => {
            tracing::warn!(
                uri,
                "the Docker engine did not answer within {ANSWER_WITHIN:?}"
            );
            None
        }
    }
}
