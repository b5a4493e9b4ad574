//! What one instance holds of the host, by handles that mean nothing to any other.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use plugin_protocol::Handle;

use crate::provision::Refusal;
use crate::provision::gpio_lines::EdgeWatch;
use crate::provision::journal::JournalSource;
use crate::provision::led::Light;
use crate::provision::serial::Port;
use crate::provision::update_lock::Lock;

/// How many things an instance can hold at a time.
const MOST: usize = 256;

/// What an instance holds. Dropping it lets all of that go.
#[derive(Default)]
pub(crate) struct Holdings(Mutex<HandleTable>);

#[derive(Default)]
struct HandleTable {
    things: HashMap<Handle, HeldResource>,
    latest: u64,
}

/// One thing.
pub(crate) enum HeldResource {
    Light(Arc<Mutex<Light>>),
    Locks(#[expect(dead_code, reason = "held for its drop")] Lock),
    Journal(Arc<JournalSource>),
    Serial(Arc<Port>),
    Edges(Arc<EdgeWatch>),
}

/// The instance holds [`MOST`] already.
#[derive(Debug)]
pub(crate) struct TooMany;

impl Holdings {
    /// Takes one more.
    pub(crate) fn add(&self, holding: HeldResource) -> Result<Handle, TooMany> {
        let mut table = self.0.lock();
        if table.things.len() >= MOST {
            return Err(TooMany);
        }
        table.latest += 1;
        let handle = Handle(table.latest);
        table.things.insert(handle, holding);
        Ok(handle)
    }

    /// What `using` makes of the thing of this handle.
    pub(crate) fn with<R>(
        &self,
        handle: Handle,
        using: impl FnOnce(&mut HeldResource) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        let mut table = self.0.lock();
        let holding = table.things.get_mut(&handle);
        using(holding.ok_or(Refusal::Handle(handle))?)
    }

    /// The LED of this handle.
    pub(crate) fn light(&self, handle: Handle) -> Result<Arc<Mutex<Light>>, Refusal> {
        self.with(handle, |holding| match holding {
            HeldResource::Light(light) => Ok(Arc::clone(light)),
            _ => Err(Refusal::Handle(handle)),
        })
    }

    /// The reader of the journal of this handle.
    pub(crate) fn journal(&self, handle: Handle) -> Result<Arc<JournalSource>, Refusal> {
        self.with(handle, |holding| match holding {
            HeldResource::Journal(source) => Ok(Arc::clone(source)),
            _ => Err(Refusal::Handle(handle)),
        })
    }

    /// The serial port of this handle.
    pub(crate) fn serial(&self, handle: Handle) -> Result<Arc<Port>, Refusal> {
        self.with(handle, |holding| match holding {
            HeldResource::Serial(port) => Ok(Arc::clone(port)),
            _ => Err(Refusal::Handle(handle)),
        })
    }

    /// The wait for the edges of the GPIO line that the plugin calls so, where the instance has begun one.
    pub(crate) fn edge_watch(&self, line: &str) -> Option<Arc<EdgeWatch>> {
        let table = self.0.lock();
        table.things.values().find_map(|holding| match holding {
            HeldResource::Edges(watch) if watch.name == line => Some(Arc::clone(watch)),
            _ => None,
        })
    }

    /// Lets one go.
    pub(crate) fn release(&self, handle: Handle) {
        // What that does may take its time, and is no matter of the others.
        let released = self.0.lock().things.remove(&handle);
        drop(released);
    }
}
