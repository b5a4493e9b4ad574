//! Instances that are prepared ahead, so that a call need not wait for its own.
//!
//! They take at most half of the pool and belong to the plugins that were called last. Creating one runs the plugin's
//! start function, so each plugin's instances are created by a separate task and within a second: one that never
//! finishes starting delays no other. The same task throws away the instance that was used before, or a task that runs
//! no plugin code does. Neither happens in the path of the requests. Plugins with folders have no prepared instances:
//! an instance opens the folders when it is created, and they may have changed by the time of its call.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};

use crate::bounds::START_WITHIN;
use crate::instance::Instance;
use crate::plugin::Plugin;
use crate::pool::Pool;

/// How long plugins must not have been called to count as being at rest.
const AT_REST: Duration = Duration::from_secs(5);
/// How many are kept ready for one plugin.
const EACH: usize = 2;
/// The prepared instances.
pub(crate) struct WarmPool {
    shared: Arc<WarmPoolState>,
    /// One for each plugin whose instances are being created; they end with this.
    makers: Mutex<JoinSet<()>>,
    cleanup: Cleanup,
    clearing: JoinHandle<()>,
}

struct WarmPoolState {
    /// The most instances of all plugins together.
    most: usize,
    /// The plugin called last comes first.
    entries: Mutex<VecDeque<Entry>>,
}

/// The state of one plugin.
struct Entry {
    plugin: Weak<Plugin>,
    instances: Vec<Instance>,
    /// Alive while a task creates more instances; it creates one at a time.
    maker: Weak<()>,
    /// Whether the last attempt started in time.
    starts: bool,
}

impl WarmPool {
    /// Starts the cleanup task, which ends when this is dropped. `return_memory` is called once plugins have come to
    /// rest.
    pub(crate) fn start(pool: &Pool, return_memory: Option<fn()>) -> WarmPool {
        let (used, to_drop) = mpsc::unbounded_channel();
        let cleanup = Cleanup {
            used,
            work: Arc::default(),
        };
        let work = Arc::clone(&cleanup.work);
        let clearing = tokio::spawn(clear(to_drop, work, return_memory));
        let shared = Arc::new(WarmPoolState {
            most: pool.slots() / 2,
            entries: Mutex::default(),
        });
        WarmPool {
            shared,
            makers: Mutex::default(),
            cleanup,
            clearing,
        }
    }

    /// Returns whether the task that throws away used instances is alive.
    pub(crate) fn are_cleared(&self) -> bool {
        !self.clearing.is_finished()
    }

    /// Returns a prepared instance of `plugin`, if there is one. The plugin now counts as the one called last.
    pub(crate) fn take(&self, plugin: &Arc<Plugin>) -> Option<Instance> {
        let mut entries = self.shared.entries.lock();
        let at = entries.iter().position(|other| is(&other.plugin, plugin))?;
        if at > 0
            && let Some(entry) = entries.remove(at)
        {
            entries.push_front(entry);
        }
        entries.front_mut()?.instances.pop()
    }

    /// Throws `used` away after a call, and has another instance prepared.
    pub(crate) fn replace(&self, plugin: &Arc<Plugin>, used: Option<Instance>) {
        let maker = if plugin.has_folders() {
            None
        } else {
            self.shared.begin(plugin)
        };
        let Some(maker) = maker else {
            if let Some(used) = used {
                self.cleanup.throw_away(used);
            }
            return;
        };
        let mut makers = self.makers.lock();
        while makers.try_join_next().is_some() {}
        let (shared, plugin) = (Arc::clone(&self.shared), Arc::clone(plugin));
        let cleanup = self.cleanup.clone();
        // One task does both: a second one would wake another thread while the answer is on its way.
        makers.spawn(async move {
            drop(used);
            shared.fill(&plugin, maker).await;
            cleanup.note_work();
        });
    }

    /// Records that code was loaded, which leaves holes in the heap as calls do.
    pub(crate) fn note_load(&self) {
        self.cleanup.note_work();
    }

    /// Records that a call had to start its own instance, which took this long, or failed (`None`).
    pub(crate) fn started(&self, plugin: &Arc<Plugin>, took: Option<Duration>) {
        let in_time = took.is_some_and(|took| took <= START_WITHIN);
        self.shared.note_start(plugin, in_time);
    }

    /// Gives up the instance that is needed least, for its slot and its memory. Returns whether there was one.
    pub(crate) fn give_up_one(&self) -> bool {
        let mut entries = self.shared.entries.lock();
        let given_up = entries
            .iter_mut()
            .rev()
            .find_map(|entry| entry.instances.pop());
        drop(entries);
        given_up.is_some()
    }

    /// Gives up the instances of a version that can no longer be called.
    pub(crate) fn forget(&self, plugin: &Arc<Plugin>) {
        let mut entries = self.shared.entries.lock();
        plugin.retire();
        let at = entries.iter().position(|other| is(&other.plugin, plugin));
        let removed = at.and_then(|at| entries.remove(at));
        drop(entries);
        // Thrown away once others can go on.
        drop(removed);
    }
}

/// What a separate task cleans up.
#[derive(Clone)]
struct Cleanup {
    /// Accepts used instances.
    used: mpsc::UnboundedSender<Instance>,
    /// Notified of what leaves holes in the heap.
    work: Arc<Notify>,
}

impl Cleanup {
    fn throw_away(&self, instance: Instance) {
        // If the task is gone, the instance is thrown away here.
        let _ = self.used.send(instance);
        self.note_work();
    }

    /// Has memory returned once nothing has happened for a while. This wakes the task only after a rest.
    fn note_work(&self) {
        self.work.notify_one();
    }
}

/// Throws away the instances it receives. Loads and calls leave holes in the heap: after the plugins' start and after a
/// burst of calls, the memory that the heap keeps is returned to the system.
async fn clear(
    mut to_drop: mpsc::UnboundedReceiver<Instance>,
    work: Arc<Notify>,
    return_memory: Option<fn()>,
) {
    let dropping = async { while to_drop.recv().await.is_some() {} };
    let returning = async {
        loop {
            work.notified().await;
            // Until a while has passed without more of it.
            loop {
                tokio::time::sleep(AT_REST).await;
                if work.notified().now_or_never().is_none() {
                    break;
                }
            }
            if let Some(return_memory) = return_memory {
                return_memory();
            }
        }
    };
    tokio::select! {
        () = dropping => {}
        () = returning => {}
    }
}

impl WarmPoolState {
    /// Returns a token whose holder creates the instances of `plugin`; `None` if a task already does so, or if the
    /// plugin does not start in time.
    fn begin(&self, plugin: &Arc<Plugin>) -> Option<Arc<()>> {
        let mut entries = self.entries.lock();
        if plugin.is_retired() {
            return None;
        }
        let entry = entry_of(&mut entries, plugin)?;
        if !entry.starts || entry.maker.strong_count() > 0 {
            return None;
        }
        let maker = Arc::new(());
        entry.maker = Arc::downgrade(&maker);
        Some(maker)
    }

    fn note_start(&self, plugin: &Arc<Plugin>, in_time: bool) {
        let mut entries = self.entries.lock();
        if !plugin.is_retired()
            && let Some(entry) = entry_of(&mut entries, plugin)
        {
            entry.starts = in_time;
        }
    }

    /// Creates instances of `plugin` until it has [`EACH`], at the expense of plugins called less recently.
    async fn fill(&self, plugin: &Arc<Plugin>, maker: Arc<()>) {
        while self.make_room(plugin) {
            let Some(slot) = plugin.pool().try_slot(plugin.places) else {
                break;
            };
            let started = Instance::new_within(START_WITHIN, plugin, slot).await;
            // The call that needs an instance reports why it cannot be created.
            let Ok(instance) = started else {
                self.note_start(plugin, false);
                break;
            };
            let mut entries = self.entries.lock();
            if let Some(entry) = entries.iter_mut().find(|other| is(&other.plugin, plugin)) {
                entry.instances.push(instance);
            }
            drop(entries);
            // Its calls may be waiting for the memory that this one has.
            plugin.memory_share.wake_waiters();
        }
        drop(maker);
    }

    /// Returns whether `plugin` can have another instance, and makes room for it. If not, its maker is done.
    fn make_room(&self, plugin: &Arc<Plugin>) -> bool {
        // Thrown away once others can go on.
        let mut given_up = None;
        let mut entries = self.entries.lock();
        let Some(at) = entries.iter().position(|other| is(&other.plugin, plugin)) else {
            return false;
        };
        // An instance that is being created takes a place as well.
        let places = |entry: &Entry| entry.instances.len() + entry.maker.strong_count().min(1);
        let total: usize = entries.iter().map(places).sum();
        let mut can = entries
            .get(at)
            .is_some_and(|entry| entry.instances.len() < EACH);
        // This plugin's place is already in the total.
        if can && total > self.most {
            // A plugin that was called less recently has to give up an instance.
            let mut later = entries.iter_mut().enumerate().skip(at + 1).rev();
            given_up = later.find_map(|(_, entry)| entry.instances.pop());
            can = given_up.is_some();
        }
        if !can && let Some(entry) = entries.get_mut(at) {
            // Done under the lock, so that a call which ends now starts another maker.
            entry.maker = Weak::new();
        }
        drop(entries);
        drop(given_up);
        can
    }
}

/// Returns the entry of `plugin`, and creates it if necessary. Entries with nothing to remember are removed.
fn entry_of<'a>(entries: &'a mut VecDeque<Entry>, plugin: &Arc<Plugin>) -> Option<&'a mut Entry> {
    if !entries.iter().any(|other| is(&other.plugin, plugin)) {
        entries.retain(|entry| {
            !entry.instances.is_empty() || !entry.starts || entry.maker.strong_count() > 0
        });
        entries.push_front(Entry {
            plugin: Arc::downgrade(plugin),
            instances: Vec::new(),
            maker: Weak::new(),
            starts: true,
        });
    }
    entries.iter_mut().find(|other| is(&other.plugin, plugin))
}

fn is(weak: &Weak<Plugin>, plugin: &Arc<Plugin>) -> bool {
    std::ptr::eq(weak.as_ptr(), Arc::as_ptr(plugin))
}
