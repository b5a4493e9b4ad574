//! The objects of the host that instances hold, by handles that mean nothing to any other instance.

pub(crate) mod journal;
pub(crate) mod update_locks;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use plugin_protocol::{Handle, InstanceId, JournalAnswer};

use crate::hardware::gpio_lines::EdgeWatch;
use crate::hardware::leds::Light;
use crate::hardware::serial_port::Port;
use crate::refusal::Refusal;
use journal::{JournalBody, JournalSource};
use update_locks::Lock;

/// How many objects an instance can hold at a time.
const MOST: usize = 256;
/// How many instances of one plugin can hold something at a time: more than any runtime has.
const MOST_INSTANCES: usize = 4096;

/// What each instance of one version of a plugin holds, if it has made calls.
#[derive(Default)]
pub(crate) struct InstanceHoldings(Mutex<HashMap<InstanceId, Arc<Holdings>>>);

impl InstanceHoldings {
    /// Returns what an instance holds, which may be nothing yet; `None` if too many instances hold something.
    pub(crate) fn of(&self, instance: InstanceId) -> Option<Arc<Holdings>> {
        let mut instances = self.0.lock();
        if instances.len() >= MOST_INSTANCES && !instances.contains_key(&instance) {
            return None;
        }
        Some(Arc::clone(instances.entry(instance).or_default()))
    }

    /// Returns the body for a stream of the journal that the plugin returned, if the plugin holds it.
    pub(crate) fn journal(&self, answer: &JournalAnswer) -> Option<JournalBody> {
        let holdings = self.0.lock().get(&answer.instance).cloned()?;
        let source = holdings.journal(answer.reader).ok()?;
        Some(JournalBody::new(source, answer.used))
    }

    /// Releases an object of an instance.
    pub(crate) fn release(&self, instance: InstanceId, handle: Handle) {
        let holdings = self.0.lock().get(&instance).cloned();
        if let Some(holdings) = holdings {
            holdings.release(handle);
        }
    }

    /// Releases everything that an instance holds.
    pub(crate) fn end(&self, instance: InstanceId) {
        // This may take time, and must not delay the others.
        let ended = self.0.lock().remove(&instance);
        drop(ended);
    }
}

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

    /// Returns the object with this handle if it is of the kind that `of_kind` returns.
    fn find<R>(
        &self,
        handle: Handle,
        of_kind: impl FnOnce(&HeldResource) -> Option<&Arc<R>>,
    ) -> Result<Arc<R>, Refusal> {
        let table = self.0.lock();
        let found = table.things.get(&handle).and_then(of_kind);
        found.cloned().ok_or(Refusal::Handle(handle))
    }

    /// Returns the LED with this handle.
    pub(crate) fn light(&self, handle: Handle) -> Result<Arc<Mutex<Light>>, Refusal> {
        self.find(handle, |holding| match holding {
            HeldResource::Light(light) => Some(light),
            _ => None,
        })
    }

    /// Returns the reader of the journal with this handle.
    pub(crate) fn journal(&self, handle: Handle) -> Result<Arc<JournalSource>, Refusal> {
        self.find(handle, |holding| match holding {
            HeldResource::Journal(source) => Some(source),
            _ => None,
        })
    }

    /// Returns the serial port with this handle.
    pub(crate) fn serial(&self, handle: Handle) -> Result<Arc<Port>, Refusal> {
        self.find(handle, |holding| match holding {
            HeldResource::Serial(port) => Some(port),
            _ => None,
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
