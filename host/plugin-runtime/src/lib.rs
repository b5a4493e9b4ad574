//! Runs plugins: components in the sandbox of wasmtime, an instance for each call.
//!
//! [`Runtime`] is the whole interface of this crate, and implements the trait [`GuestRuntime`] of `plugin_protocol`. It
//! gives instances what their blueprints grant, within the limits in them, and gets everything else from the host
//! through `HostCalls`. It knows nothing of policies, manifests or the supervisor.

#![warn(missing_docs)]

include!("../../../wit/mirror.rs");

mod action_exports;
mod answer;
mod bindings;
mod bounds;
mod capabilities;
mod clock;
mod code;
mod export_types;
mod exports;
mod failed_function;
mod failure;
mod guest;
mod host_stream;
mod instance;
mod instance_host;
mod instance_log;
mod linker;
mod memory_budget;
mod meter;
mod plugin;
mod plugin_handle;
mod pool;
mod request_body;
mod running;
mod runtime_state;
mod sink;
mod ticker;
mod warm_pool;
mod wasi;
mod wasi_http;

use std::fs::File;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::{GuestCode, GuestRuntime};
use wasmtime::PoolingAllocationConfig;

use code::Code;
use linker::Linkers;
use pool::Pool;
use runtime_state::RuntimeState;
use warm_pool::WarmPool;

/// The resources of a runtime for all plugins together.
#[derive(Debug, Clone, Copy)]
pub struct Resources {
    /// How many instances can exist at a time, spares included; `plugin_protocol::DEFAULT_SLOTS` unless there is a
    /// reason.
    pub slots: usize,
    /// The memory of all instances together, in bytes.
    pub memory: usize,
    /// Returns the memory that the heap keeps to the system; called once plugins have come to rest.
    pub return_memory: Option<fn()>,
}

/// Opens the kernel's information about this process's pages, if it shows which were written. An instance's place is
/// then reset by rewriting these pages instead of returning all of them, which costs each thread a moment and the next
/// instance a fault for each page. Must be called while this process may still open it; later runtimes use it.
pub fn open_page_map() -> bool {
    PoolingAllocationConfig::is_pagemap_scan_available()
}

/// A runtime in this process.
pub struct Runtime {
    shared: Arc<RuntimeState>,
}

/// The wasm engine could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the wasm engine: {0}")]
pub struct EngineError(String);

impl Runtime {
    /// Creates a runtime. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn new(resources: Resources) -> Result<Runtime, EngineError> {
        let pool = Pool::new(resources.slots, resources.memory)
            .map_err(|error| EngineError(format!("{error:#}")))?;
        let pool = Arc::new(pool);
        Ok(Runtime {
            shared: Arc::new(RuntimeState {
                warm_pool: WarmPool::start(&pool, resources.return_memory),
                pool,
                linkers: Linkers::default(),
            }),
        })
    }
}

impl GuestRuntime for Runtime {
    fn open(&self, file: File) -> BoxFuture<'static, Result<Arc<dyn GuestCode>, String>> {
        let shared = Arc::clone(&self.shared);
        let open = move || {
            let component = sandbox::deserialize_open(&shared.pool.engine, &file)
                .map_err(|error| format!("{error:#}"))?;
            shared.warm_pool.note_load();
            Ok(Arc::new(Code::new(shared, component)) as Arc<dyn GuestCode>)
        };
        // Opening reads the file.
        let opened = tokio::task::spawn_blocking(open);
        let stopping = || Err("the runtime is stopping".to_owned());
        opened
            .map(move |opened| opened.unwrap_or_else(|_| stopping()))
            .boxed()
    }

    fn slots(&self) -> usize {
        self.shared.pool.slots()
    }

    fn set_memory(&self, bytes: usize) {
        self.shared.pool.memory.set_most(bytes);
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = self.shared.pool.problems();
        if !self.shared.warm_pool.are_cleared() {
            problems.push("the task that frees what plugins used has ended".to_owned());
        }
        problems
    }
}
