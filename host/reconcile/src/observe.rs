//! Listing of the objects on an engine.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use engine::{Engine, EngineError};
use model::{Branding, error_chain};

use crate::view::{EngineObjects, Listing, ObjectKind, component_of};

/// Lists `kinds` on `engine`, all in parallel.
pub(crate) async fn list(
    engine: &dyn Engine,
    branding: &Branding,
    kinds: BTreeSet<ObjectKind>,
    begun: u64,
) -> Listing {
    let component = |name: &str, labels: &BTreeMap<String, String>| {
        component_of(branding, engine.kind(), name, labels)
    };
    let wants = |kind| kinds.contains(&kind);
    let (containers, images, volumes, networks) = futures::join!(
        listed_if(wants(ObjectKind::Containers), engine.containers()),
        listed_if(wants(ObjectKind::Images), engine.images()),
        listed_if(wants(ObjectKind::Volumes), engine.volumes()),
        listed_if(wants(ObjectKind::Networks), engine.networks()),
    );
    let mut failure = None;
    let containers = or_failure(containers, &mut failure);
    let images = or_failure(images, &mut failure);
    let volumes = or_failure(volumes, &mut failure).into_iter();
    let networks = or_failure(networks, &mut failure).into_iter();
    Listing {
        engine: engine.kind(),
        begun,
        kinds,
        objects: EngineObjects {
            containers,
            images,
            volumes: volumes.map(|it| component(&it.name, &it.labels)).collect(),
            networks: networks.map(|it| component(&it.name, &it.labels)).collect(),
        },
        failure,
    }
}

async fn listed_if<T>(
    is_wanted: bool,
    listing: impl Future<Output = Result<Vec<T>, EngineError>>,
) -> Result<Vec<T>, EngineError> {
    if is_wanted {
        listing.await
    } else {
        Ok(Vec::new())
    }
}

/// Returns the listed objects; the first failure is recorded.
fn or_failure<T>(listed: Result<Vec<T>, EngineError>, failure: &mut Option<String>) -> Vec<T> {
    listed.unwrap_or_else(|error| {
        failure.get_or_insert(error_chain(&error));
        Vec::new()
    })
}
