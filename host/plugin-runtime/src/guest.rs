//! The data behind one instance: that of its store.

use std::sync::Arc;

use plugin_protocol::{Blueprint, Bound, CallUsage, HostCalls, LogLevel, ServedCall};
use wasmtime::ResourceLimiter;
use wasmtime::component::{Accessor, HasData, ResourceTable};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::WasiHttpCtx;

use crate::instance_host::InstanceHost;
use crate::instance_log::{LogBudget, LogOutput};
use crate::memory_budget::MemoryShare;
use crate::wasi_http::outgoing::OutgoingRequests;

/// How many host resources (streams, files, LEDs, requests) an instance can hold at a time.
const RESOURCES: usize = 128;
/// How many elements all tables of an instance can have together.
const TABLE_ELEMENTS: usize = 65_536;
/// The largest headers that a component writes, in bytes of the host's memory: each takes some 70 in addition to its
/// text.
const FIELDS: usize = 32 << 10;
/// The most random bytes that a plugin gets at once.
const RANDOM_BYTES: u64 = 64 << 10;

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
        let mut wasi_http = WasiHttpCtx::new();
        wasi_http.set_field_size_limit(FIELDS);
        Ok(Guest {
            wasi: wasi_context(&blueprint, &log)?,
            wasi_http,
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

/// Creates the context of an instance: no arguments, no environment, closed input, output to the log, and the folders
/// that the policy names.
fn wasi_context(blueprint: &Blueprint, log: &Arc<LogBudget>) -> wasmtime::Result<WasiCtx> {
    let mut builder = WasiCtx::builder();
    builder.stdout(LogOutput::new(Arc::clone(log), LogLevel::Info));
    builder.stderr(LogOutput::new(Arc::clone(log), LogLevel::Warn));
    builder.max_random_size(RANDOM_BYTES);
    for folder in &blueprint.folders {
        let access = if folder.write {
            FsPerms::ReadWrite
        } else {
            FsPerms::ReadOnly
        };
        if folder.optional && !folder.host.is_dir() {
            continue;
        }
        builder
            .preopened_dir(&folder.host, &folder.guest, access)
            .map_err(|error| {
                let host = folder.host.display();
                error.context(format!(
                    "cannot open the folder `{host}` that the policy grants"
                ))
            })?;
    }
    Ok(builder.build())
}

/// Gives generated code access to the guest itself.
pub(crate) struct GuestData;

/// Access to the calling guest, from an asynchronous function.
pub(crate) type GuestAccess = Accessor<Guest, GuestData>;

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
