//! Local mode, and its snapshot (docs/spec/device.md#local-mode): what was there when it was entered, so that leaving
//! removes what was made in it and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{EngineKind, ImageRef, error_chain};
use serde::{Deserialize, Serialize};

use crate::messages::{Message, StoredRecord};
use crate::observe::list;
use crate::steps::StepContext;
use crate::view::{EngineView, KINDS};

/// How long a container may take to stop when local mode is left.
const GRACE: Duration = Duration::from_secs(10);

/// Ids and names, by engine. An engine that is not in it held nothing of ours that we know of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Snapshot(BTreeMap<EngineKind, EngineInventory>);

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct EngineInventory {
    containers: BTreeSet<String>,
    /// References, of all images: nobody's that were there before are removed.
    images: BTreeSet<String>,
    volumes: BTreeSet<String>,
    networks: BTreeSet<String>,
}

impl Snapshot {
    pub(crate) fn has(&self, engine: EngineKind) -> bool {
        self.0.contains_key(&engine)
    }

    pub(crate) fn add(&mut self, engine: EngineKind, view: &EngineView) {
        let images = view.images.iter().flat_map(|image| &image.references);
        let held = EngineInventory {
            containers: view.containers.iter().map(|c| c.id.to_string()).collect(),
            images: images.map(ToString::to_string).collect(),
            volumes: view
                .volumes
                .iter()
                .map(|volume| volume.name.clone())
                .collect(),
            networks: view
                .networks
                .iter()
                .map(|network| network.name.clone())
                .collect(),
        };
        self.0.insert(engine, held);
    }
}

/// Removes everything of ours that is not in `snapshot`, and of the images those that we pulled. What
/// cannot be removed is logged and left. The network of the API stays.
pub(crate) async fn clean_up(
    context: &StepContext,
    snapshot: &Snapshot,
    pulled: &BTreeSet<ImageRef>,
) {
    for engine in context.engines.all() {
        // One that was never listed in local mode has nothing that was made in it.
        let Some(before) = snapshot.0.get(&engine.kind()) else {
            continue;
        };
        let now = list(engine.as_ref(), &KINDS.into_iter().collect(), 0).await;
        if let Some(why) = now.failure {
            tracing::warn!(
                engine = %engine.kind(),
                "failed to clean up after local mode on {}: {why}",
                engine.kind()
            );
        }
        let complain = |what: String, error: engine::EngineError| {
            tracing::warn!(
                engine = %engine.kind(),
                "failed to remove {what} after local mode: {}",
                error_chain(&error)
            );
        };
        let containers = now.containers.unwrap_or_default().into_iter();
        let removals = containers
            .filter(|container| !before.containers.contains(container.id.as_str()))
            .map(|container| async move {
                let removed = async {
                    engine.stop_container(&container.id, GRACE).await?;
                    engine.remove_container(&container.id).await
                };
                if let Err(error) = removed.await {
                    complain(format!("container `{}`", container.name), error);
                }
            });
        futures::future::join_all(removals).await;
        let networks: BTreeSet<String> = now
            .networks
            .unwrap_or_default()
            .into_iter()
            .map(|n| n.name)
            .collect();
        for name in networks.difference(&before.networks) {
            if *name == context.branding.network {
                continue;
            }
            if let Err(error) = engine.remove_network(name).await {
                complain(format!("network `{name}`"), error);
            }
        }
        for volume in now.volumes.unwrap_or_default() {
            if before.volumes.contains(&volume.name) {
                continue;
            }
            if let Err(error) = engine.remove_volume(&volume.name).await {
                complain(format!("volume `{}`", volume.name), error);
            }
        }
        let held = now.images.unwrap_or_default();
        let references = held.iter().flat_map(|image| &image.references);
        for reference in references {
            let ours = pulled
                .iter()
                .find(|image| plan::is_same_image(image, reference));
            if let Some(image) = ours
                && !before.images.contains(reference.as_str())
            {
                match engine.remove_image(reference).await {
                    Ok(()) => match context.journal.forget_image(image.clone()).await {
                        Ok(()) => {
                            context.tell(Message::Stored(StoredRecord::NoImage(image.clone())))
                        }
                        Err(why) => {
                            tracing::warn!(%image, "failed to forget image `{image}`: {why}")
                        }
                    },
                    Err(error) => complain(format!("image `{reference}`"), error),
                }
            }
        }
    }
}
