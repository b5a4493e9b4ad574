//! The loop's observation: what may have changed is listed, on all engines in parallel.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::EngineKind;
use tokio::time::Instant;

use super::ReconcilerTask;
use crate::messages::Message;
use crate::observe;
use crate::view::{EngineObjects, KINDS, Listing, ObjectKind};

/// How long a listing may take before the engine counts as silent.
const LISTING_TIMEOUT: Duration = Duration::from_secs(60);

impl ReconcilerTask {
    /// Starts to list what may have changed, on all engines in parallel.
    pub(super) fn observe(&mut self) {
        self.look_at_host();
        self.look_at_os();
        let now = Instant::now();
        for engine in self.context.engines.all() {
            let kind = engine.kind();
            let waits = self.retries.engine_waits(kind, now);
            if waits || self.in_flight.listings.contains(&kind) {
                continue;
            }
            let Some((kinds, begun)) = self.view.begin(kind) else {
                continue;
            };
            self.in_flight.listings.insert(kind);
            let engine = Arc::clone(engine);
            let context = Arc::clone(&self.context);
            tokio::spawn(async move {
                let branding = context.branding.clone();
                // In a separate task, so that a panic in an engine is a failure like any other.
                let listing = tokio::spawn(async move {
                    let listing = observe::list(engine.as_ref(), &branding, kinds, begun);
                    tokio::time::timeout(LISTING_TIMEOUT, listing).await
                });
                let failed = |why: &str| Listing {
                    engine: kind,
                    begun,
                    kinds: BTreeSet::new(),
                    objects: EngineObjects::default(),
                    failure: Some(why.to_owned()),
                };
                let listing = match listing.await {
                    Ok(Ok(listing)) => listing,
                    Ok(Err(_)) => failed("it did not list its objects in time"),
                    Err(_) => failed(
                        "the task that lists its objects ended unexpectedly; the log has the cause",
                    ),
                };
                context.send(Message::Listed(listing));
            });
        }
    }

    pub(super) fn announce(&mut self, announced: BTreeMap<EngineKind, BTreeSet<ObjectKind>>) {
        for (engine, kinds) in announced {
            // An engine that sends an event is available.
            self.retries.engine_answers(engine);
            self.view.mark(engine, kinds);
        }
    }

    pub(super) fn retry_silent(&mut self) {
        for engine in self.retries.engines_due(Instant::now()) {
            self.view.mark(engine, KINDS);
        }
    }

    pub(super) fn listed(&mut self, listing: Listing) {
        let engine = listing.engine;
        self.in_flight.listings.remove(&engine);
        if let Some(why) = &listing.failure {
            let failures = self.retries.engine_failed(engine, why.clone());
            if failures.count == 1 {
                tracing::warn!(%engine, "the {engine} engine does not answer: {why}");
            }
        } else if self.retries.engine_answers(engine) {
            tracing::info!(%engine, "the {engine} engine answers again");
        }
        self.view.listed(listing);
    }
}
