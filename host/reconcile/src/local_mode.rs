//! Local mode, and its snapshot (docs/spec/device.md#local-mode): the objects that existed when it was entered, so that
//! leaving it removes what was created in it and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{EngineKind, ImageRef, error_chain};
use serde::{Deserialize, Serialize};

use crate::messages::StoredRecord;
use crate::observe::list;
use crate::step_context::StepContext;
use crate::view::{EngineObjects, EngineView, KINDS};

/// How long a container may take to stop when local mode is left.
const GRACE: Duration = Duration::from_secs(10);

/// Ids and names, by engine. An engine without an entry held nothing of ours that we know of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Snapshot(BTreeMap<EngineKind, EngineInventory>);

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct EngineInventory {
    containers: BTreeSet<String>,
    /// References of all images: images that existed before are never removed, whoever pulled them.
    images: BTreeSet<String>,
    volumes: BTreeSet<String>,
    networks: BTreeSet<String>,
}

impl Snapshot {
    pub(crate) fn has(&self, engine: EngineKind) -> bool {
        self.0.contains_key(&engine)
    }

    pub(crate) fn add(&mut self, engine: EngineKind, view: &EngineView) {
        let EngineObjects {
            containers,
            images,
            volumes,
            networks,
        } = &view.objects;
        let references = images.iter().flat_map(|image| &image.references);
        let inventory = EngineInventory {
            containers: containers.iter().map(|it| it.id.to_string()).collect(),
            images: references.map(ToString::to_string).collect(),
            volumes: volumes.iter().map(|it| it.name.clone()).collect(),
            networks: networks.iter().map(|it| it.name.clone()).collect(),
        };
        self.0.insert(engine, inventory);
    }
}

/// Removes everything of ours that is not in `snapshot`; of the images, only those that the supervisor pulled. Failed
/// removals are logged and skipped. The network of the API stays.
pub(crate) async fn clean_up(
    context: &StepContext,
    snapshot: &Snapshot,
    pulled: &BTreeSet<ImageRef>,
) {
    for engine in context.engines.all() {
        // An engine that was never listed in local mode holds nothing that was created in it.
        let Some(before) = snapshot.0.get(&engine.kind()) else {
            continue;
        };
        let now = list(engine.as_ref(), &context.branding, KINDS.into(), 0).await;
        let kind = engine.kind();
        if let Some(why) = now.failure {
            tracing::warn!(engine = %kind, "failed to clean up after local mode on {kind}: {why}");
        }
        let complain = |object: &str, name: &str, error: engine::EngineError| {
            tracing::warn!(
                engine = %kind,
                kind = object,
                name,
                "failed to remove {object} `{name}` after local mode: {}",
                error_chain(&error)
            );
        };
        let EngineObjects {
            containers,
            images,
            volumes,
            networks,
        } = now.objects;
        let removals = containers
            .into_iter()
            .filter(|container| !before.containers.contains(container.id.as_str()))
            .map(|container| async move {
                let removed = async {
                    engine.stop_container(&container.id, GRACE).await?;
                    engine.remove_container(&container.id).await
                };
                if let Err(error) = removed.await {
                    complain("container", &container.name, error);
                }
            });
        futures::future::join_all(removals).await;
        for network in networks {
            let name = network.name;
            if name == context.branding.network || before.networks.contains(&name) {
                continue;
            }
            if let Err(error) = engine.remove_network(&name).await {
                complain("network", &name, error);
            }
        }
        for volume in volumes {
            let name = volume.name;
            if before.volumes.contains(&name) {
                continue;
            }
            if let Err(error) = engine.remove_volume(&name).await {
                complain("volume", &name, error);
            }
        }
        for reference in images.iter().flat_map(|image| &image.references) {
            let mut pulled = pulled.iter();
            let ours = pulled.find(|image| plan::is_same_image(image, reference));
            let Some(image) = ours.filter(|_| !before.images.contains(reference.as_str())) else {
                continue;
            };
            if let Err(error) = engine.remove_image(reference).await {
                complain("image", reference.as_str(), error);
            } else if let Err(why) = context.record(StoredRecord::NoImage(image.clone())).await {
                tracing::warn!(%image, "failed to delete the record of the image `{image}`: {why}");
            }
        }
    }
}
