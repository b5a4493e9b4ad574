//! The objects of the host that one instance holds, by handles that mean nothing to any other instance.

pub(crate) mod journal;
pub(crate) mod update_locks;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use plugin_protocol::Handle;

use crate::hardware::gpio_lines::EdgeWatch;
use crate::hardware::leds::Light;
use crate::hardware::serial_port::Port;
use crate::refusal::Refusal;
use journal::JournalSource;
use update_locks::Lock;

/// How many objects an instance can hold at a time.
const MOST: usize = 256;

/// The objects that an instance holds. Dropping it releases all of them.
#[derive(Default)]
pub(crate) struct Holdings(Mutex<HandleTable>);

#[derive(Default)]
struct HandleTable {
    things: HashMap<Handle, HeldResource>,
    latest: u64,
}

/// A single object.
pub(crate) enum HeldResource {
    Light(Arc<Mutex<Light>>),
    Locks(#[expect(dead_code, reason = "held for its drop")] Lock),
    Journal(Arc<JournalSource>),
    Serial(Arc<Port>),
    Edges(Arc<EdgeWatch>),
}

/// The instance already holds [`MOST`].
#[derive(Debug)]
pub(crate) struct HandleLimitError;

impl Holdings {
    /// Adds an object.
    pub(crate) fn add(&self, holding: HeldResource) -> Result<Handle, HandleLimitError> {
        let mut table = self.0.lock();
        if table.things.len() >= MOST {
            return Err(HandleLimitError);
        }
        table.latest += 1;
        let handle = Handle(table.latest);
        table.things.insert(handle, holding);
        Ok(handle)
    }

    /// Returns the result of `using` for the object with this handle.
    pub(crate) fn with<R>(
        &self,
        handle: Handle,
        using: impl FnOnce(&mut HeldResource) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        let mut table = self.0.lock();
        let holding = table.things.get_mut(&handle);
        using(holding.ok_or(Refusal::Handle(handle))?)
    }

    /// Returns the LED with this handle.
    pub(crate) fn light(&self, handle: Handle) -> Result<Arc<Mutex<Light>>, Refusal> {
        self.with(handle, |holding| match holding {
            HeldResource::Light(light) => Ok(Arc::clone(light)),
            _ => Err(Refusal::Handle(handle)),
        })
    }

    /// Returns the reader of the journal with this handle.
    pub(crate) fn journal(&self, handle: Handle) -> Result<Arc<JournalSource>, Refusal> {
        self.with(handle, |holding| match holding {
            HeldResource::Journal(source) => Ok(Arc::clone(source)),
            _ => Err(Refusal::Handle(handle)),
        })
    }

    /// Returns the serial port with this handle.
    pub(crate) fn serial(&self, handle: Handle) -> Result<Arc<Port>, Refusal> {
        self.with(handle, |holding| match holding {
            HeldResource::Serial(port) => Ok(Arc::clone(port)),
            _ => Err(Refusal::Handle(handle)),
        })
    }

    /// Returns the wait for edges of the GPIO line with this name, if the instance has begun one.
    pub(crate) fn edge_watch(&self, line: &str) -> Option<Arc<EdgeWatch>> {
        let table = self.0.lock();
        table.things.values().find_map(|holding| match holding {
            HeldResource::Edges(watch) if watch.name == line => Some(Arc::clone(watch)),
            _ => None,
        })
    }

    /// Releases an object.
    pub(crate) fn release(&self, handle: Handle) {
        // This may take time, and must not delay the others.
        let released = self.0.lock().things.remove(&handle);
        drop(released);
    }
}
