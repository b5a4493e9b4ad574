//! The Docker engine that a user of this machine normally uses, and whether it answers.

use std::env;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use bollard::Docker;

/// The time limit for an engine's answer; a running one answers at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Returns the address that `docker` itself and `supervisor run` use: DOCKER_HOST, or else the
/// usual socket.
pub(crate) fn address() -> String {
    let named = ["SUPERVISOR_DOCKER_HOST", "DOCKER_HOST"]
        .into_iter()
        .filter_map(|variable| env::var(variable).ok())
        .find(|address| !address.is_empty());
    named.unwrap_or_else(|| "unix:///var/run/docker.sock".to_owned())
}

/// Returns a client that speaks the engine's version.
///
/// # Errors
/// Why it does not answer: one short line to print after the address.
pub(crate) async fn connect(address: &str) -> Result<Docker> {
    let answer = async {
        let docker = Docker::connect_with_host(address)?;
        let docker = docker.negotiate_version().await?;
        docker.ping().await?;
        Ok::<_, bollard::errors::Error>(docker)
    };
    let failure = match tokio::time::timeout(ANSWER_WITHIN, answer).await {
        Ok(Ok(docker)) => return Ok(docker),
        // The other errors in the chain are only phrases of HTTP clients.
        Ok(Err(error)) => match anyhow::Error::new(error).chain().last() {
            Some(cause) => anyhow!("{cause}"),
            None => anyhow!("it cannot be reached"),
        },
        Err(_) => anyhow!("no response within {ANSWER_WITHIN:?}"),
    };
    Err(failure).with_context(|| format!("no Docker engine answers at {address}"))
}
