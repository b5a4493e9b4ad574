//! One version of a plugin, linked: its instances are created from this.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use plugin_protocol::{Blueprint, Failure, HostCalls, Limits};
use wasmtime::component::{Component, InstancePre};

use crate::exports::ExportIndices;
use crate::guest::Guest;
use crate::linker::Linkers;
use crate::memory_budget::MemoryShare;
use crate::pool::{self, Pool};

/// One version of a plugin.
pub(crate) struct Plugin {
    blueprint: Arc<Blueprint>,
    linked: Result<LinkedComponent, String>,
    /// How many places of the pool an instance takes.
    pub(crate) places: u32,
    pub(crate) memory_share: Arc<MemoryShare>,
    host: Arc<dyn HostCalls>,
    pool: Arc<Pool>,
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
        pool: &Arc<Pool>,
        linkers: &Linkers,
        component: &Component,
        blueprint: Blueprint,
        host: Arc<dyn HostCalls>,
    ) -> Plugin {
        let linked = linkers.granted(&pool.engine, &blueprint.grants, |linker| {
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
            memory_share: pool.memory.share(),
            host,
            pool: Arc::clone(pool),
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
        &self.pool
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
}
