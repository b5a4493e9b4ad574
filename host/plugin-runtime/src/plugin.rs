//! One version of a plugin, linked: its instances are created from this.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::{
    ActionAnswer, ActionCall, Blueprint, Failure, GuestPlugin, GuestRequest, HostCalls, Limits,
    Outcome, ServedCall,
};
use wasmtime::component::{Component, InstancePre};

use crate::RuntimeState;
use crate::exports::ExportIndices;
use crate::failure;
use crate::guest::Guest;
use crate::instance::{Instance, MeteredGuest, within_cpu};
use crate::memory_budget::MemoryShare;
use crate::pool::{self, Pool};
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

    pub(crate) fn spares(&self) -> &WarmPool {
        &self.shared.spares
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
        let mut unanswered = OpenCall(Some(self));
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
        let (pool, spares) = (self.pool(), self.spares());
        if let Some(mut ready) = spares.take(self) {
            ready.wake();
            return Ok(ready);
        }
        // If no slot is free, another plugin's spare is less urgent than this call.
        let slot = loop {
            if let Some(slot) = pool.try_slot(self.places) {
                break slot;
            }
            if !spares.give_up_one() {
                let slot = pool.slot(self.places).await;
                break slot.ok_or_else(|| Failure::Busy(pool.full()))?;
            }
        };
        let share = &self.memory_share;
        // The same applies to memory.
        while !share.has_room() && spares.give_up_one() {}
        share.room().await.map_err(Failure::Busy)?;
        let begun = Instant::now();
        let started = Instance::new(pool, self, slot).await;
        let took = started.is_ok().then(|| begun.elapsed());
        spares.started(self, took);
        started
    }

    /// Calls an action in a new instance, within its CPU time; the caller limits the wall-clock time.
    async fn act(&self, serving: ServedCall, call: ActionCall) -> Result<ActionAnswer, Failure> {
        let pool = self.pool();
        let Some(slot) = pool.slot(self.places).await else {
            return Err(Failure::Busy(pool.full()));
        };
        let mut instance = Instance::new(pool, self, slot).await?;
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

/// A call without an answer yet: its plugin gets another instance if the call fails or is abandoned.
struct OpenCall<'a>(Option<&'a Arc<Plugin>>);

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if let Some(plugin) = self.0 {
            plugin.spares().replace(plugin, None);
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
        self.0.spares().forget(&self.0);
    }
}
