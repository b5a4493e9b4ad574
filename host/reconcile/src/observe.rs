//! Listing what an engine holds.

use std::collections::BTreeSet;
use std::future::Future;

use engine::{Engine, EngineError};
use model::error_chain;

use crate::view::{Kind, Listing};

/// Lists `kinds` of `engine`, all at once.
pub(crate) async fn list(engine: &dyn Engine, kinds: &BTreeSet<Kind>, begun: u64) -> Listing {
    let wants = |kind| kinds.contains(&kind);
    let (containers, images, volumes, networks) = futures::join!(
        wanted(wants(Kind::Containers), engine.containers()),
        wanted(wants(Kind::Images), engine.images()),
        wanted(wants(Kind::Volumes), engine.volumes()),
        wanted(wants(Kind::Networks), engine.networks()),
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

type Listed<T> = Option<Result<Vec<T>, EngineError>>;

async fn wanted<T>(
    wanted: bool,
    listing: impl Future<Output = Result<Vec<T>, EngineError>>,
) -> Listed<T> {
    if wanted { Some(listing.await) } else { None }
}

/// What was listed; the first failure is noted.
fn kept<T>(listed: Listed<T>, failure: &mut Option<String>) -> Option<Vec<T>> {
    match listed? {
        Ok(found) => Some(found),
        Err(error) => {
            failure.get_or_insert(error_chain(&error));
            None
        }
    }
}
