//! Deletes the data of deleted images from the registry.
//!
//! The transaction that deleted the images records their locations in the database ([`data::ImageGarbage`]). This
//! module deletes the manifests of the repository, by its tags and by the digest known to the cloud, together with the
//! manifests that an index among them names; `registry garbage-collect` then frees everything that no manifest names
//! any more. It never deletes in a repository that an image still uses, and requests a right only on the repository
//! concerned.
//!
//! A client that may push keeps its token until the token expires. Therefore each repository is checked a second time
//! after that.

mod repository;

use std::time::Duration;

use anyhow::{Context as _, Result};
use cloud_core::cloud::Cloud;
use data::ImageGarbage;
use reqwest::Client;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::scope::may_be_an_image;
use super::{LIFE, SKEW};
use crate::state::{Server, ServerState};
use repository::{Failure, Repository};

/// Interval between checks for work that is due.
const LOOK: Duration = Duration::from_secs(15);
/// After this time, all tokens issued while the image existed have expired.
const SETTLED: Duration = Duration::from_secs(LIFE.as_secs() + 2 * SKEW.unsigned_abs() + 60);
/// The time for one repository; the rest waits for its next turn.
const PATIENCE: Duration = Duration::from_secs(120);
/// Images that wait longer than this are late.
const LATE: Duration = Duration::from_secs(3600);
/// The first pause after a failure; each further one is twice as long.
const PAUSE: Duration = Duration::from_secs(60);
/// The longest pause before a repository is tried again, and before the registry is.
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 3600);
const LONGEST_PAUSE_OF_ALL: Duration = Duration::from_secs(600);
/// How often a repository is tried before it is left as it is: over about three days.
const TRIES: u32 = 20;
/// The time for a whole request.
const REQUEST: Duration = Duration::from_secs(30);

/// Deletes data that is due until the program ends; returns at once if no registry is configured for this.
pub(crate) async fn collecting(server: ServerState, stop: CancellationToken) {
    let Some(url) = server.cloud.configuration.registry_url.clone() else {
        return;
    };
    let client = match client() {
        Ok(client) => client,
        Err(error) => {
            tracing::error!("images are not deleted from the registry: {error:#}");
            return;
        }
    };
    let mut times = interval(LOOK);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut registry = RegistryState::default();
    let work = async {
        loop {
            tokio::select! {
                _ = times.tick() => {}
                () = server.garbage.more_arrived() => {}
            }
            if registry.rests() {
                log_if_late(&server).await;
                continue;
            }
            if let Err(error) = collect_due(&server, &client, &url, &mut registry).await {
                tracing::warn!(
                    "failed to delete images from the registry, trying again: {error:#}"
                );
            }
            log_if_late(&server).await;
        }
    };
    stop.run_until_cancelled(work).await;
}

fn client() -> Result<Client> {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .timeout(REQUEST)
        // A token for one repository must not be sent anywhere else.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("fleet-cloud/", env!("CARGO_PKG_VERSION")))
        .build()
        .context("failed to create a client for the registry")
}

/// Whether the registry can be used at the moment, as far as this replica knows.
#[derive(Default)]
struct RegistryState {
    failures: u32,
    rests_until: Option<Instant>,
}

impl RegistryState {
    fn rests(&self) -> bool {
        self.rests_until.is_some_and(|until| until > Instant::now())
    }

    fn failed(&mut self) -> Duration {
        let pause = pause(self.failures, LONGEST_PAUSE_OF_ALL);
        self.failures = self.failures.saturating_add(1);
        self.rests_until = Some(Instant::now() + pause);
        pause
    }
}

/// Returns the pause after this many failures.
fn pause(failures: u32, longest: Duration) -> Duration {
    let times = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    PAUSE.saturating_mul(times).min(longest)
}

/// Deletes data that is due, one repository after the other.
async fn collect_due(
    server: &Server,
    client: &Client,
    url: &str,
    registry: &mut RegistryState,
) -> Result<()> {
    let database = &server.cloud.database;
    while let Some(garbage) = database.claim_image_garbage().await? {
        let location = &garbage.location;
        let Some(name) = repository_of(&server.cloud, &garbage).await? else {
            database.drop_image_garbage(&garbage).await?;
            continue;
        };
        let collected = match Repository::new(server, client, url, name) {
            Ok(repository) => {
                let all = repository.empty(garbage.content_hash.as_deref());
                let late = || Failure::Repository(format!("it took longer than {PATIENCE:?}"));
                timeout(PATIENCE, all).await.unwrap_or_else(|_| Err(late()))
            }
            Err(failure) => Err(failure),
        };
        match collected {
            Ok(manifests) => {
                registry.failures = 0;
                if manifests > 0 {
                    tracing::info!(
                        %location,
                        "the registry deleted {manifests} manifests of `{location}`, whose image was deleted"
                    );
                }
                match SETTLED.checked_sub(garbage.age) {
                    Some(left) => database.put_off_image_garbage(&garbage, left, 0).await?,
                    None => database.drop_image_garbage(&garbage).await?,
                }
            }
            Err(Failure::Repository(reason)) if garbage.failures + 1 >= TRIES => {
                tracing::error!(
                    %location,
                    "`{location}`, whose image was deleted, stays in the registry; deleting it failed {TRIES} times, \
                     so delete it by hand: {reason}"
                );
                database.drop_image_garbage(&garbage).await?;
            }
            Err(Failure::Repository(reason)) => {
                let pause = pause(garbage.failures, LONGEST_PAUSE);
                tracing::warn!(
                    %location,
                    "`{location}`, whose image was deleted, is not deleted from the registry yet and tried again in \
                     {pause:?}: {reason}"
                );
                let failures = garbage.failures + 1;
                database
                    .put_off_image_garbage(&garbage, pause, failures)
                    .await?;
            }
            // This repository is not the cause, and the others would fail too.
            Err(Failure::Registry(reason)) => {
                let pause = registry.failed();
                tracing::warn!(
                    "failed to delete images from the registry, trying again in {pause:?}: {reason}"
                );
                return Ok(database
                    .put_off_image_garbage(&garbage, pause, garbage.failures)
                    .await?);
            }
        }
    }
    Ok(())
}

/// Returns the repository of a location, if this cloud may delete it.
async fn repository_of<'a>(cloud: &Cloud, garbage: &'a ImageGarbage) -> Result<Option<&'a str>> {
    let location = &garbage.location;
    let at_host = location.strip_prefix(cloud.environment.registry.as_str());
    let name = at_host.and_then(|rest| rest.strip_prefix('/'));
    let Some(name) = name.filter(|name| may_be_an_image(name)) else {
        tracing::warn!(
            %location,
            "`{location}`, whose image was deleted, is in no registry of this cloud (`registry` is `{}`), and is left as it is",
            cloud.environment.registry
        );
        return Ok(None);
    };
    if cloud.database.is_image_location(location).await? {
        tracing::warn!(%location, "`{location}` is not deleted from the registry: an image has it");
        return Ok(None);
    }
    Ok(Some(name))
}

async fn log_if_late(server: &Server) {
    let (number, oldest) = match server.cloud.database.image_garbage().await {
        Ok(waiting) => waiting,
        Err(error) => {
            tracing::warn!(
                "failed to count the images that wait to be deleted from the registry: {error}"
            );
            return;
        }
    };
    let late = oldest > LATE;
    let was_late = server.garbage.set_late(late);
    if late && !was_late {
        tracing::error!(
            "{number} deleted images wait to be removed from the registry, the oldest for {} minutes",
            oldest.as_secs() / 60
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_bound() {
        let seconds = |failures, longest| pause(failures, longest).as_secs();
        assert_eq!(seconds(0, LONGEST_PAUSE), 60);
        assert_eq!(seconds(3, LONGEST_PAUSE), 480);
        assert_eq!(seconds(19, LONGEST_PAUSE), 21_600);
        assert_eq!(seconds(u32::MAX, LONGEST_PAUSE_OF_ALL), 600);
    }
}
