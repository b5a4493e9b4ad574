//! One run of a service's component: its resources, and how it ended.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use wasm_service::log_file::Stream;
use wasm_service::record::{Launch, Network};
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Engine, ResourceLimiter, Store};
use wasmtime_wasi::p2::bindings::CommandPre;
use wasmtime_wasi::sockets::WasiSocketsCtxView;
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::rules::Rules;
use crate::sockets::{self, SocketTable, Sockets};
use crate::stdio::{Input, Output, ServiceLog};

/// The exit code of a service that trapped, as of a native one that called `abort`.
pub(crate) const TRAPPED: i64 = 134;

/// Resources other than memory also have limits, except tables, whose size counts in bytes as memory.
const BYTES_PER_TABLE_ELEMENT: u64 = 16;
/// The maximum elements of all tables together.
const MAX_TABLE_ELEMENTS: u64 = 10_000_000;
/// The maximum of open files, sockets and the like at a time.
const MAX_RESOURCES: usize = 8192;

/// A component that is loaded and linked, for any number of consecutive runs.
pub(crate) struct Guest {
    engine: Engine,
    command: CommandPre<Service>,
    launch: Arc<Launch>,
    rules: Arc<Rules>,
}

/// The state of one run.
pub(crate) struct Service {
    wasi: WasiCtx,
    resources: ResourceTable,
    memory: MemoryLimit,
    sockets: SocketTable,
}

impl WasiView for Service {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.resources,
        }
    }
}

impl Service {
    fn sockets(&mut self) -> Sockets<'_> {
        Sockets {
            inner: WasiSocketsCtxView {
                ctx: self.wasi.sockets(),
                table: &mut self.resources,
            },
            table: &mut self.sockets,
        }
    }
}

/// How a run ended.
pub(crate) struct GuestExit {
    pub(crate) exit_code: i64,
    /// What went wrong, with the trace, unless the service ended itself.
    pub(crate) failure: Option<String>,
}

impl Guest {
    /// # Errors
    /// If the component needs something that services do not get.
    pub(crate) fn link(
        engine: Engine,
        component: &Component,
        launch: Arc<Launch>,
        rules: Arc<Rules>,
    ) -> Result<Self> {
        let mut linker = Linker::new(&engine);
        let link = |linker: &mut Linker<Service>| -> wasmtime::Result<CommandPre<Service>> {
            wasmtime_wasi::p2::add_to_linker_async(linker)?;
            if let Network::Own(_) = launch.network {
                sockets::add_to_linker(linker, Service::sockets)?;
            }
            CommandPre::new(linker.instantiate_pre(component)?)
        };
        let command = link(&mut linker)
            .map_err(anyhow::Error::from)
            .context("the component is not one that runs as a service (a WASI 0.2 command)")?;
        Ok(Guest {
            engine,
            command,
            launch,
            rules,
        })
    }

    /// Runs the component until it ends for any reason.
    pub(crate) async fn run(&self, input: Input, log: &ServiceLog) -> GuestExit {
        let (exit_code, failure) = match self.try_run(input, log).await {
            Ok(exit_code) => (exit_code, None),
            Err(error) => match error.downcast_ref::<I32Exit>() {
                Some(I32Exit(code)) => (i64::from(*code), None),
                None => (TRAPPED, Some(format!("{error:?}"))),
            },
        };
        GuestExit { exit_code, failure }
    }

    async fn try_run(&self, input: Input, log: &ServiceLog) -> wasmtime::Result<i64> {
        self.rules.ports.release_all();
        let mut resources = ResourceTable::new();
        resources.set_max_capacity(MAX_RESOURCES);
        let service = Service {
            wasi: self.wasi(input, log)?,
            resources,
            memory: MemoryLimit::new(self.launch.memory_limit),
            sockets: SocketTable::new(self.rules.clone()),
        };
        let mut store = Store::new(&self.engine, service);
        store.limiter(|service| &mut service.memory);
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        let command = self.command.instantiate_async(&mut store).await?;
        let result = command.wasi_cli_run().call_run(&mut store).await?;
        Ok(i64::from(result.is_err()))
    }

    fn wasi(&self, input: Input, log: &ServiceLog) -> wasmtime::Result<WasiCtx> {
        let launch = &*self.launch;
        let mut wasi = WasiCtxBuilder::new();
        let stream = |stream| Output {
            log: log.clone(),
            stream,
        };
        wasi.stdin(input)
            .stdout(stream(Stream::Output))
            .stderr(stream(Stream::Error))
            .args(&launch.arguments)
            // Only this guest uses the thread.
            .allow_blocking_current_thread(true);
        for (name, value) in &launch.environment {
            wasi.env(name, value);
        }
        if !launch.working_dir.is_empty() {
            wasi.initial_cwd(&launch.working_dir);
        }
        for folder in &launch.folders {
            let permissions = if folder.read_only {
                FsPerms::ReadOnly
            } else {
                FsPerms::ReadWrite
            };
            wasi.preopened_dir(&folder.host, &folder.guest, permissions)
                .map_err(|error| error.context(format!("failed to mount `{}`", folder.guest)))?;
        }
        let has_network = launch.network != Network::None;
        wasi.allow_tcp(has_network)
            .allow_udp(has_network)
            .allow_ip_name_lookup(has_network);
        match &launch.network {
            Network::None => {}
            Network::Host => {
                wasi.inherit_network();
            }
            Network::Own(_) => {
                let rules = self.rules.clone();
                wasi.socket_addr_check(move |address, usage| {
                    Box::pin(std::future::ready(rules.allows(address, usage)))
                });
            }
        }
        Ok(wasi.build())
    }
}

/// The limit on linear memories and tables together, in bytes.
struct MemoryLimit {
    limit: u64,
    used: u64,
    elements: u64,
}

impl MemoryLimit {
    fn new(limit: u64) -> Self {
        MemoryLimit {
            limit: if limit == 0 { u64::MAX } else { limit },
            used: 0,
            elements: 0,
        }
    }

    fn take(&mut self, bytes: u64) -> bool {
        let used = self.used.saturating_add(bytes);
        let fits = used <= self.limit;
        if fits {
            self.used = used;
        }
        fits
    }
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let allowed = maximum.is_none_or(|maximum| desired <= maximum);
        Ok(allowed && self.take(desired.saturating_sub(current) as u64))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current) as u64;
        let allowed = maximum.is_none_or(|maximum| desired <= maximum)
            && self.elements + more <= MAX_TABLE_ELEMENTS
            && self.take(more.saturating_mul(BYTES_PER_TABLE_ELEMENT));
        if allowed {
            self.elements += more;
        }
        Ok(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_memories_have_one_limit_together() {
        let mut limit = MemoryLimit::new(100 << 20);
        assert!(limit.memory_growing(0, 60 << 20, None).unwrap());
        assert!(!limit.memory_growing(0, 60 << 20, None).unwrap());
        assert!(limit.memory_growing(0, 40 << 20, None).unwrap());
        assert!(!limit.table_growing(0, 1, None).unwrap());
    }
}
