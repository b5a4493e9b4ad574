//! What stands behind one instance: the data of its store.

use std::borrow::Cow;
use std::sync::Arc;

use wasmtime::ResourceLimiter;
use wasmtime::component::{HasData, ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::actions::Actions;
use crate::capabilities::led::Leds;
use crate::capabilities::log::LogBudget;
use crate::config::{AppLocks, Cloud, Device, HostName, PluginData};
use crate::identify::Identify;
use crate::pins::Pin;
use crate::policy::Grants;
use crate::wasi;

/// How many host resources (streams, files, LEDs) an instance can hold at a time.
const RESOURCES: usize = 256;
/// How many elements all tables of an instance can have together.
const TABLE_ELEMENTS: usize = 65_536;

/// What all instances of one version of a plugin share.
pub(crate) struct Surroundings {
    /// The plugin's name.
    pub(crate) name: Arc<str>,
    /// Its own configuration as JSON.
    pub(crate) config: String,
    /// What the policy grants it.
    pub(crate) grants: Grants,
    /// How much linear memory an instance may have, in bytes.
    pub(crate) memory: usize,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) data: Arc<dyn PluginData>,
    pub(crate) cloud: Arc<dyn Cloud>,
    pub(crate) os: Arc<dyn os::HostOs>,
    pub(crate) locks: Arc<dyn AppLocks>,
    pub(crate) host_name: Arc<dyn HostName>,
    pub(crate) journal: os::Journal,
    pub(crate) leds: Leds,
    pub(crate) identify: Identify,
    pub(crate) actions: Actions,
}

impl Surroundings {
    /// Whose stored data the plugin reads and writes: what a pinned file has kept is not an unpinned one's.
    pub(crate) fn data_owner(&self) -> Cow<'_, str> {
        if self.grants.pin == Pin::None {
            // No manifest can claim such a name.
            Cow::Owned(format!("{} (unpinned)", self.name))
        } else {
            Cow::Borrowed(&self.name)
        }
    }
}

/// The data of an instance's store.
pub(crate) struct Guest {
    pub(crate) around: Arc<Surroundings>,
    pub(crate) wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) memory: MemoryLimit,
    pub(crate) log: Arc<LogBudget>,
    /// How many plugins wait for this one's call: 0 for a request's.
    pub(crate) depth: u32,
}

impl Guest {
    pub(crate) fn new(around: Arc<Surroundings>) -> wasmtime::Result<Guest> {
        let log = Arc::new(LogBudget::new(around.name.clone()));
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES);
        Ok(Guest {
            wasi: wasi::context(&around, &log)?,
            table,
            memory: MemoryLimit {
                most: around.memory,
                used: 0,
                exceeded: false,
                table_elements: 0,
            },
            log,
            depth: 0,
            around,
        })
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

/// Gives generated code the guest itself.
pub(crate) struct ThisGuest;

impl HasData for ThisGuest {
    type Data<'a> = &'a mut Guest;
}

/// Bounds what an instance's memories and tables take together.
pub(crate) struct MemoryLimit {
    most: usize,
    used: usize,
    /// Whether it was refused memory: whatever it then dies of, that is why.
    pub(crate) exceeded: bool,
    table_elements: usize,
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
        self.used = after;
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
