//! One version of a plugin, linked: its instances are created from this.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::{
    ActionAnswer, ActionCall, Blueprint, Bound, Failure, GuestPlugin, GuestRequest, HostCalls,
    Limits, Outcome, ServedCall,
};
use wasmtime::component::{Component, InstancePre};

use crate::RuntimeState;
use crate::exports::ExportIndices;
use crate::failure;
use crate::guest::Guest;
use crate::instance::{Instance, MeteredGuest, within_cpu};
use crate::memory_budget::MemoryShare;
use crate::pool::{self, Pool, Slot};
use crate::running::RunningGuest;
use crate::warm_pool::WarmPool;

/// One version of a plugin.
pub(crate) struct Plugin {
    blueprint: Arc<Blueprint>,
    linked: Result<LinkedComponent, String>,
    /// How many places of the pool an instance takes.
    pub(crate) places: u32,
    pub(crate) memory_share: Arc<MemoryShare>,
    host: Arc<dyn HostCalls>,
    shared: Arc<RuntimeState>,
    /// Whether it can no longer be called.
    retired: AtomicBool,
}

/// A component, linked with its capabilities.
pub(crate) struct LinkedComponent {
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) exports: ExportIndices,
}

impl Plugin {
    pub(crate) fn new(
        shared: &Arc<RuntimeState>,
        component: &Component,
        blueprint: Blueprint,
        host: Arc<dyn HostCalls>,
    ) -> Plugin {
        let engine = &shared.pool.engine;
        let linked = shared.linkers.granted(engine, &blueprint.grants, |linker| {
            linker.instantiate_pre(component)
        });
        Plugin {
            linked: match linked {
                Ok(pre) => Ok(LinkedComponent {
                    exports: ExportIndices::new(&pre),
                    pre,
                }),
                Err(error) => Err(format!("it cannot be linked: {error:#}")),
            },
            places: pool::places(component),
            blueprint: Arc::new(blueprint),
            memory_share: shared.pool.memory.share(),
            host,
            shared: Arc::clone(shared),
            retired: AtomicBool::new(false),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.blueprint.limits
    }

    pub(crate) fn has_folders(&self) -> bool {
        !self.blueprint.folders.is_empty()
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    pub(crate) fn warm_pool(&self) -> &WarmPool {
        &self.shared.warm_pool
    }

    pub(crate) fn retire(&self) {
        self.retired.store(true, Relaxed);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Relaxed)
    }

    pub(crate) fn linked(&self) -> Result<&LinkedComponent, Failure> {
        let linked = self.linked.as_ref();
        linked.map_err(|reason| Failure::NotReady(reason.clone()))
    }

    /// Creates the data behind a new instance.
    pub(crate) fn guest(&self) -> wasmtime::Result<Guest> {
        let blueprint = Arc::clone(&self.blueprint);
        Guest::new(blueprint, &self.memory_share, &self.host)
    }

    async fn call(
        self: &Arc<Self>,
        serving: ServedCall,
        request: GuestRequest,
    ) -> Result<Outcome, Failure> {
        let mut unanswered = Replacement(Some(self));
        let mut instance = self.instance().await?;
        instance.serve(serving);
        let outcome = RunningGuest::new(self, instance, request)
            .until_head()
            .await;
        if outcome.is_ok() {
            unanswered.0 = None;
        }
        outcome
    }

    /// Returns an instance that is ready, or else creates one.
    async fn instance(self: &Arc<Self>) -> Result<Instance, Failure> {
        let mut is_second = false;
        loop {
            if let Some(ready) = self.spare_or_memory().await? {
                return Ok(ready);
            }
            let slot = self.slot().await?;
            let begun = Instant::now();
            let started = Instance::new(self.pool(), self, slot).await;
            let took = started.is_ok().then(|| begun.elapsed());
            self.warm_pool().started(self, took);
            match started {
                // It takes more memory to start than the last one did, and its share knows that now: once more, with
                // as much. Only once, because starting costs CPU time.
                Err(Failure::Busy(Bound::MemoryOfOne(_) | Bound::MemoryOfAll(_))) if !is_second => {
                    is_second = true;
                }
                started => return started,
            }
        }
    }

    /// Waits until there is memory for an instance. Returns one that is ready instead, if there is one, even if it is
    /// prepared only while this waits. Called before the instance has a place: whoever waits for memory keeps no place
    /// from others.
    async fn spare_or_memory(self: &Arc<Self>) -> Result<Option<Instance>, Failure> {
        let (warm_pool, share) = (self.warm_pool(), &self.memory_share);
        let mut ready = warm_pool.take(self);
        if ready.is_none() {
            let is_enough = || {
                ready = warm_pool.take(self);
                // Another plugin's spare is less urgent than this call, but does not help if the plugin's own share is
                // used up.
                while ready.is_none()
                    && matches!(share.missing(), Some(Bound::MemoryOfAll(_)))
                    && warm_pool.give_up_one()
                {}
                ready.is_some() || share.missing().is_none()
            };
            share.room(is_enough).await.map_err(Failure::Busy)?;
        }
        if let Some(ready) = &mut ready {
            ready.wake();
        }
        Ok(ready)
    }

    /// Waits for a place.
    async fn slot(&self) -> Result<Slot, Failure> {
        let (pool, warm_pool) = (self.pool(), self.warm_pool());
        // If none is free, another plugin's spare is less urgent than this call.
        loop {
            if let Some(slot) = pool.try_slot(self.places) {
                return Ok(slot);
            }
            if !warm_pool.give_up_one() {
                let slot = pool.slot(self.places).await;
                return slot.ok_or_else(|| Failure::Busy(pool.full()));
            }
        }
    }

    /// Calls an action, within the CPU time of an instance; the caller limits the wall-clock time. The instance is as
    /// new as that of a request.
    async fn act(
        self: &Arc<Self>,
        serving: ServedCall,
        call: ActionCall,
    ) -> Result<ActionAnswer, Failure> {
        let pool = self.pool();
        // Dropped after the instance, whose place and memory are free by then.
        let mut replacement = Replacement(None);
        let mut instance = self.instance().await?;
        if instance.is_spare {
            // Requests find as many as before. A plugin that is only called for actions has none.
            replacement.0 = Some(self);
        }
        instance.serve(serving);
        let (exports, store) = (&instance.exports, &mut instance.store);
        let meter = Arc::clone(&instance.meter);
        let outcome = {
            let calling = store.run_concurrent(async |accessor| exports.act(accessor, call).await);
            let metered = MeteredGuest {
                future: Box::pin(calling),
                pool,
                meter: &meter,
            };
            within_cpu(metered).await
        };
        match outcome {
            Some(Ok(Ok(answer))) => Ok(answer),
            Some(Ok(Err(error)) | Err(error)) => Err(failure::classify(
                &error,
                instance.store.data(),
                meter.exceeded(),
            )),
            None => Err(Failure::Cpu {
                limit: self.limits().cpu,
            }),
        }
    }
}

/// Has another instance of the plugin prepared when this is dropped, even if the call fails or is abandoned.
struct Replacement<'a>(Option<&'a Arc<Plugin>>);

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if let Some(plugin) = self.0 {
            plugin.warm_pool().replace(plugin, None);
        }
    }
}

/// A plugin as seen from outside this crate.
pub(crate) struct PluginHandle(pub(crate) Arc<Plugin>);

impl GuestPlugin for PluginHandle {
    fn call(
        &self,
        serving: ServedCall,
        request: GuestRequest,
    ) -> BoxFuture<'_, Result<Outcome, Failure>> {
        self.0.call(serving, request).boxed()
    }

    fn act(
        &self,
        serving: ServedCall,
        call: ActionCall,
    ) -> BoxFuture<'_, Result<ActionAnswer, Failure>> {
        self.0.act(serving, call).boxed()
    }
}

impl Drop for PluginHandle {
    fn drop(&mut self) {
        self.0.warm_pool().forget(&self.0);
    }
}
