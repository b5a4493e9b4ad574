//! Engine events: they make the loop observe again. They only say that something changed, so any number of them between
//! two passes counts as one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, EngineEvent, Engines};
use futures::StreamExt;
use model::EngineKind;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::backoff;
use crate::view::{KINDS, ObjectKind};

/// Announced changes that have not been observed yet.
#[derive(Debug, Default)]
pub(crate) struct EngineEvents {
    kinds: Mutex<BTreeMap<EngineKind, BTreeSet<ObjectKind>>>,
    wake: Notify,
}

impl EngineEvents {
    /// Starts listening to all `engines`, until `stop`.
    pub(crate) fn listen(engines: &Engines, cap: Duration, stop: &CancellationToken) -> Arc<Self> {
        let announced = Arc::new(EngineEvents::default());
        for engine in engines.all() {
            let following = follow(Arc::clone(engine), Arc::clone(&announced), cap);
            tokio::spawn(stop.clone().run_until_cancelled_owned(following));
        }
        announced
    }

    fn add(&self, engine: EngineKind, kinds: impl IntoIterator<Item = ObjectKind>) {
        let mut announced = self.kinds.lock();
        announced.entry(engine).or_default().extend(kinds);
        drop(announced);
        self.wake.notify_one();
    }

    /// Waits for a change, and returns all changes so far.
    pub(crate) async fn next(&self) -> BTreeMap<EngineKind, BTreeSet<ObjectKind>> {
        loop {
            let announced = {
                let mut kinds = self.kinds.lock();
                std::mem::take(&mut *kinds)
            };
            if !announced.is_empty() {
                return announced;
            }
            self.wake.notified().await;
        }
    }
}

/// Forwards the events of one engine, across its restarts.
async fn follow(engine: Arc<dyn Engine>, announced: Arc<EngineEvents>, cap: Duration) {
    let kind = engine.kind();
    let mut failures = 0;
    loop {
        match engine.events().await {
            Ok(mut events) => {
                // Whatever happened before the stream began was missed. The first stream begins before the first
                // listing, or the listing is repeated.
                announced.add(kind, KINDS);
                failures = 0;
                while let Some(event) = events.next().await {
                    match event {
                        EngineEvent::Container(_) => announced.add(kind, [ObjectKind::Containers]),
                        EngineEvent::Other => announced.add(kind, KINDS),
                    }
                }
                tracing::warn!(engine = %kind, "the events of the {kind} engine ended; subscribing to them again");
                announced.add(kind, KINDS);
            }
            Err(error) => {
                tracing::debug!(engine = %kind, %error, "failed to listen to the {kind} engine");
            }
        }
        failures += 1;
        tokio::time::sleep(backoff::delay(failures, cap)).await;
    }
}
