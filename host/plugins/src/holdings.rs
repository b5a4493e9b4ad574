//! What one instance holds of the host, by handles that mean nothing to any other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plugin_protocol::Handle;

use crate::provision::Refusal;
use crate::provision::journal::JournalSource;
use crate::provision::led::Light;
use crate::provision::update_lock::Lock;

/// How many things an instance can hold at a time.
const MOST: usize = 256;

/// What an instance holds. Dropping it lets all of that go.
#[derive(Default)]
pub(crate) struct Holdings(Mutex<Held>);

#[derive(Default)]
struct Held {
    things: HashMap<Handle, Holding>,
    latest: u64,
}

/// One thing.
pub(crate) enum Holding {
    Light(Light),
    Locks(#[expect(dead_code, reason = "held for its drop")] Lock),
    Journal(Arc<JournalSource>),
}

/// The instance holds [`MOST`] already.
#[derive(Debug)]
pub(crate) struct TooMany;

impl Holdings {
    /// Takes one more.
    pub(crate) fn add(&self, holding: Holding) -> Result<Handle, TooMany> {
        let mut held = self.lock();
        if held.things.len() >= MOST {
            return Err(TooMany);
        }
        held.latest += 1;
        let handle = Handle(held.latest);
        held.things.insert(handle, holding);
        Ok(handle)
    }

    /// What `using` makes of the thing of this handle.
    pub(crate) fn with<R>(
        &self,
        handle: Handle,
        using: impl FnOnce(&mut Holding) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        let mut held = self.lock();
        let holding = held.things.get_mut(&handle);
        using(holding.ok_or(Refusal::Handle(handle))?)
    }

    /// The reader of the journal of this handle.
    pub(crate) fn journal(&self, handle: Handle) -> Result<Arc<JournalSource>, Refusal> {
        self.with(handle, |holding| match holding {
            Holding::Journal(source) => Ok(Arc::clone(source)),
            _ => Err(Refusal::Handle(handle)),
        })
    }

    /// Lets one go.
    pub(crate) fn release(&self, handle: Handle) {
        // What that does may take its time, and is no matter of the others.
        let released = self.lock().things.remove(&handle);
        drop(released);
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
