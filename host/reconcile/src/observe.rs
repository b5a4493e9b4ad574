//! Listing what an engine holds.

use std::collections::BTreeSet;
use std::future::Future;

use engine::{Engine, EngineError};
use model::error_chain;

use crate::view::{Listing, ObjectKind};

/// Lists `kinds` of `engine`, all at once.
pub(crate) async fn list(engine: &dyn Engine, kinds: &BTreeSet<ObjectKind>, begun: u64) -> Listing {
    let wants = |kind| kinds.contains(&kind);
    let (containers, images, volumes, networks) = futures::join!(
        wanted(wants(ObjectKind::Containers), engine.containers()),
        wanted(wants(ObjectKind::Images), engine.images()),
        wanted(wants(ObjectKind::Volumes), engine.volumes()),
        wanted(wants(ObjectKind::Networks), engine.networks()),
    );
    let mut failure = None;
    Listing {
        engine: engine.kind(),
        begun,
        containers: kept(containers, &mut failure),
        images: kept(images, &mut failure),
        volumes: kept(volumes, &mut failure),
        networks: kept(networks, &mut failure),
        failure,
    }
}

type ListResult<T> = Option<Result<Vec<T>, EngineError>>;

async fn wanted<T>(
    wanted: bool,
    listing: impl Future<Output = Result<Vec<T>, EngineError>>,
) -> ListResult<T> {
    if wanted { Some(listing.await) } else { None }
}

/// What was listed; the first failure is noted.
fn kept<T>(listed: ListResult<T>, failure: &mut Option<String>) -> Option<Vec<T>> {
    match listed? {
        Ok(found) => Some(found),
        Err(error) => {
            failure.get_or_insert(error_chain(&error));
            None
        }
    }
}
