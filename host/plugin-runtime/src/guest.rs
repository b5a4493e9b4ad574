//! The data behind one instance: that of its store.

use std::sync::Arc;

use plugin_protocol::{Blueprint, Bound, CallUsage, HostCalls, ServedCall};
use wasmtime::ResourceLimiter;
use wasmtime::component::{Accessor, HasData, ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::WasiHttpCtx;

use crate::capabilities::log::LogBudget;
use crate::instance_host::InstanceHost;
use crate::memory_budget::MemoryShare;
use crate::wasi;
use crate::wasi_http::{self, OutgoingRequests};

/// How many host resources (streams, files, LEDs, requests) an instance can hold at a time.
const RESOURCES: usize = 128;
/// How many elements all tables of an instance can have together.
const TABLE_ELEMENTS: usize = 65_536;

/// The data of an instance's store.
pub(crate) struct Guest {
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) host: InstanceHost,
    pub(crate) wasi: WasiCtx,
    pub(crate) wasi_http: WasiHttpCtx,
    pub(crate) outgoing: OutgoingRequests,
    pub(crate) table: ResourceTable,
    pub(crate) memory: MemoryLimit,
    pub(crate) log: Arc<LogBudget>,
}

impl Guest {
    /// Creates the data of an instance of `blueprint`, whose memory is counted in `share`.
    pub(crate) fn new(
        blueprint: Arc<Blueprint>,
        share: &Arc<MemoryShare>,
        calls: &Arc<dyn HostCalls>,
    ) -> wasmtime::Result<Guest> {
        let host = InstanceHost::new(Arc::clone(calls));
        let log = Arc::new(LogBudget::new(host.clone()));
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES);
        Ok(Guest {
            wasi: wasi::context(&blueprint, &log)?,
            wasi_http: wasi_http::context(),
            outgoing: OutgoingRequests::new(host.clone(), Arc::clone(&log)),
            table,
            memory: MemoryLimit {
                most: blueprint.limits.memory,
                used: 0,
                share: Arc::clone(share),
                usage: None,
                exceeded: false,
                no_room: None,
                needed: 0,
                table_elements: 0,
            },
            log,
            host,
            blueprint,
        })
    }
}

impl Guest {
    /// Makes the instance serve this call from now on.
    pub(crate) fn serve(&mut self, serving: ServedCall) {
        self.host.serving = Arc::new(serving);
        self.outgoing.host = self.host.clone();
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

/// Gives generated code access to the guest itself.
pub(crate) struct GuestData;

/// Access to the calling guest, from an asynchronous function.
pub(crate) type GuestAccess = Accessor<Guest, GuestData>;

/// The result of a function of `wit/` that can fail. The outer error is for calls that the plugin may not make: it
/// traps.
pub(crate) type Answer<T, E> = wasmtime::Result<Result<T, E>>;

/// Returns the host of the calling instance.
pub(crate) fn host(access: &GuestAccess) -> InstanceHost {
    access.with(|mut access| access.get().host.clone())
}

impl HasData for GuestData {
    type Data<'a> = &'a mut Guest;
}

/// Limits what an instance's memories and tables take together.
pub(crate) struct MemoryLimit {
    most: usize,
    used: usize,
    share: Arc<MemoryShare>,
    /// The place where `used` is shown, if the caller shows it.
    usage: Option<Arc<CallUsage>>,
    /// Whether it was refused memory: that is the cause of whatever it then dies of.
    pub(crate) exceeded: bool,
    /// Set if it was refused memory because the memory shared by plugins ran out.
    pub(crate) no_room: Option<Bound>,
    /// How much it would have had then, in bytes.
    needed: usize,
    table_elements: usize,
}

impl MemoryLimit {
    /// Shows the memory here from now on.
    pub(crate) fn show_in(&mut self, usage: &Arc<CallUsage>) {
        usage.record_memory(self.used);
        self.usage = Some(Arc::clone(usage));
    }

    /// Notes for the next instance of the plugin what this one took to start.
    pub(crate) fn note_start(&self) {
        self.share.note_start(self.used);
    }

    /// Notes for the next instance of the plugin what this one needed, if it did not start because that was refused.
    pub(crate) fn note_failed_start(&self) {
        if self.no_room.is_some() {
            self.share.note_start(self.needed);
        }
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        self.share.give_back(self.used);
    }
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let after = self.used.saturating_add(desired.saturating_sub(current));
        if after > self.most {
            self.exceeded = true;
            return Ok(false);
        }
        if let Err(bound) = self.share.take(after - self.used) {
            self.no_room = Some(bound);
            self.needed = after;
            return Ok(false);
        }
        self.used = after;
        if let Some(usage) = &self.usage {
            usage.record_memory(after);
        }
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let after = self
            .table_elements
            .saturating_add(desired.saturating_sub(current));
        if after > TABLE_ELEMENTS {
            self.exceeded = true;
            return Ok(false);
        }
        self.table_elements = after;
        Ok(true)
    }
}
