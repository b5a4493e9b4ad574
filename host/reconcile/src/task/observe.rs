//! The loop's looking: what may have changed is listed, on all engines at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::EngineKind;
use tokio::time::Instant;

use super::{ReconcilerTask, SilentEngine};
use crate::messages::Message;
use crate::view::{KINDS, Listing, ObjectKind};
use crate::{backoff, observe};

/// How long an engine may take to list what it holds before it counts as silent.
const LISTING_TIMEOUT: Duration = Duration::from_secs(60);

impl ReconcilerTask {
    /// Starts to list what may have changed, on all engines at once.
    pub(super) fn observe(&mut self) {
        self.look_at_host();
        let now = Instant::now();
        for engine in self.context.engines.all() {
            let kind = engine.kind();
            let waits = self
                .silent
                .get(&kind)
                .is_some_and(|silent| silent.retry_at > now);
            if waits || self.listing.contains(&kind) {
                continue;
            }
            let Some((kinds, begun)) = self.view.begin(kind) else {
                continue;
            };
            self.listing.insert(kind);
            let engine = Arc::clone(engine);
            let context = Arc::clone(&self.context);
            tokio::spawn(async move {
                // In a task of its own, so that a panic in an engine is a failure like any other.
                let listing = tokio::spawn(async move {
                    let listing = observe::list(engine.as_ref(), &kinds, begun);
                    tokio::time::timeout(LISTING_TIMEOUT, listing).await
                });
                let failed = |why: &str| Listing::failed(kind, begun, why);
                let listing = match listing.await {
                    Ok(Ok(listing)) => listing,
                    Ok(Err(_)) => failed("it did not list what it holds in time"),
                    Err(_) => failed("it broke off while listing what it holds"),
                };
                context.tell(Message::Listed(listing));
            });
        }
    }

    pub(super) fn announce(&mut self, announced: BTreeMap<EngineKind, Vec<ObjectKind>>) {
        for (engine, kinds) in announced {
            // An engine that says something answers.
            self.silent.remove(&engine);
            self.view.mark(engine, &kinds);
        }
    }

    pub(super) fn retry_silent(&mut self) {
        let now = Instant::now();
        for (engine, silent) in &self.silent {
            if silent.retry_at <= now {
                self.view.mark(*engine, &KINDS);
            }
        }
    }

    pub(super) fn listed(&mut self, listing: Listing) {
        let engine = listing.engine;
        self.listing.remove(&engine);
        if let Some(why) = &listing.failure {
            let count = self
                .silent
                .get(&engine)
                .map_or(1, |silent| silent.count + 1);
            if count == 1 {
                tracing::warn!("the {engine} engine does not answer: {why}");
            }
            let delay = backoff::delay(count, self.limits.engine_retry_cap);
            let retry_at = Instant::now() + delay;
            self.silent.insert(engine, SilentEngine { count, retry_at });
        } else if self.silent.remove(&engine).is_some() {
            tracing::info!("the {engine} engine answers again");
        }
        self.view.listed(listing);
    }
}
