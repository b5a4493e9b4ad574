//! Engine events: the loop's reason to look again. They say only that something changed, so any number
//! of them between two passes is as one.

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

/// What was announced and not yet looked at.
#[derive(Debug, Default)]
pub(crate) struct EngineEvents {
    kinds: Mutex<BTreeMap<EngineKind, BTreeSet<ObjectKind>>>,
    wake: Notify,
}

impl EngineEvents {
    /// Starts to listen to all `engines`, until `stop`.
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

    /// Waits for something to be announced, and takes all of it.
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

/// Passes the events of one engine on, over its restarts.
async fn follow(engine: Arc<dyn Engine>, announced: Arc<EngineEvents>, cap: Duration) {
    let kind = engine.kind();
    let mut failures = 0;
    loop {
        match engine.events().await {
            Ok(mut events) => {
                // Whatever happened before there was a stream was missed. The first stream is there
                // before the first listing is, or the listing is made again.
                announced.add(kind, KINDS);
                failures = 0;
                while let Some(event) = events.next().await {
                    match event {
                        EngineEvent::Container(_) => announced.add(kind, [ObjectKind::Containers]),
                        EngineEvent::Other => announced.add(kind, KINDS),
                    }
                }
                tracing::warn!(engine = %kind, "the events of the {kind} engine ended; asking for new ones");
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
