//! A plugin as seen from outside this crate: its calls, each in an instance of its own.

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::{
    ActionAnswer, ActionCall, Bound, Failure, GuestPlugin, GuestRequest, Outcome, ServedCall,
};

use crate::failure;
use crate::instance::{Instance, MeteredGuest, within_cpu};
use crate::plugin::Plugin;
use crate::pool::Slot;
use crate::running::RunningGuest;
use crate::runtime_state::RuntimeState;

/// A plugin as seen from outside this crate.
pub(crate) struct PluginHandle {
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) shared: Arc<RuntimeState>,
}

impl PluginHandle {
    async fn call(&self, serving: ServedCall, request: GuestRequest) -> Result<Outcome, Failure> {
        let mut unanswered = Replacement(Some(self));
        let mut instance = self.instance().await?;
        instance.serve(serving);
        let outcome = RunningGuest::new(&self.plugin, &self.shared, instance, request)
            .until_head()
            .await;
        if outcome.is_ok() {
            unanswered.0 = None;
        }
        outcome
    }

    /// Returns an instance that is ready, or else creates one.
    async fn instance(&self) -> Result<Instance, Failure> {
        let mut is_second = false;
        loop {
            if let Some(ready) = self.spare_or_memory().await? {
                return Ok(ready);
            }
            let slot = self.slot().await?;
            let begun = Instant::now();
            let started = Instance::new(&self.plugin, slot).await;
            let took = started.is_ok().then(|| begun.elapsed());
            self.shared.warm_pool.started(&self.plugin, took);
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
    async fn spare_or_memory(&self) -> Result<Option<Instance>, Failure> {
        let (warm_pool, share) = (&self.shared.warm_pool, &self.plugin.memory_share);
        let mut ready = warm_pool.take(&self.plugin);
        if ready.is_none() {
            let is_enough = || {
                ready = warm_pool.take(&self.plugin);
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
        let RuntimeState {
            pool, warm_pool, ..
        } = &*self.shared;
        let places = self.plugin.places;
        // If none is free, another plugin's spare is less urgent than this call.
        loop {
            if let Some(slot) = pool.try_slot(places) {
                return Ok(slot);
            }
            if !warm_pool.give_up_one() {
                let slot = pool.slot(places).await;
                return slot.ok_or_else(|| Failure::Busy(pool.full()));
            }
        }
    }

    /// Calls an action, within the CPU time of an instance; the caller limits the wall-clock time. The instance is as
    /// new as that of a request.
    async fn act(&self, serving: ServedCall, call: ActionCall) -> Result<ActionAnswer, Failure> {
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
                pool: &self.shared.pool,
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
                limit: self.plugin.limits().cpu,
            }),
        }
    }
}

impl GuestPlugin for PluginHandle {
    fn call(
        &self,
        serving: ServedCall,
        request: GuestRequest,
    ) -> BoxFuture<'_, Result<Outcome, Failure>> {
        PluginHandle::call(self, serving, request).boxed()
    }

    fn act(
        &self,
        serving: ServedCall,
        call: ActionCall,
    ) -> BoxFuture<'_, Result<ActionAnswer, Failure>> {
        PluginHandle::act(self, serving, call).boxed()
    }
}

impl Drop for PluginHandle {
    fn drop(&mut self) {
        self.shared.warm_pool.forget(&self.plugin);
    }
}

/// Has another instance of the plugin prepared when this is dropped, even if the call fails or is abandoned.
struct Replacement<'a>(Option<&'a PluginHandle>);

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if let Some(PluginHandle { plugin, shared }) = self.0 {
            shared.warm_pool.replace(plugin, None);
        }
    }
}
