//! Instances made ready ahead, so that a call need not wait for its own.
//!
//! They take at most half of the pool and belong to the plugins that were called last. One task makes
//! them, and throws away those that were used: both are off the way of the requests. A plugin with
//! folders has none: an instance opens them when it is made, and by its call they may be others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::mpsc;

use crate::instance::Instance;
use crate::loaded::Loaded;
use crate::pool::{Pool, Slot};

/// How many are kept ready for one plugin.
const EACH: usize = 2;

/// The ready instances.
pub(crate) struct Spares {
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
    work: mpsc::UnboundedSender<Work>,
}

struct Shared {
    /// The most of all plugins together.
    most: usize,
    /// The plugin called last comes first.
    ready: Mutex<VecDeque<Ready>>,
}

struct Ready {
    plugin: Weak<Loaded>,
    instances: Vec<Instance>,
}

/// After a call: what was used, and whose place is to be filled.
struct Work {
    used: Option<Instance>,
    plugin: Weak<Loaded>,
}

impl Spares {
    /// Starts the task that makes them; it ends when this is dropped.
    pub(crate) fn start(pool: Arc<Pool>) -> Spares {
        let (work, mut todo) = mpsc::unbounded_channel::<Work>();
        let shared = Arc::new(Shared {
            most: pool.slots() / 2,
            ready: Mutex::default(),
        });
        let of_task = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Some(Work { used, plugin }) = todo.recv().await {
                drop(used);
                if let Some(plugin) = plugin.upgrade()
                    && plugin.around.grants.files.is_empty()
                {
                    of_task.fill(&pool, &plugin).await;
                }
            }
        });
        Spares { shared, task, work }
    }

    /// Whether the task that makes them is there.
    pub(crate) fn are_made(&self) -> bool {
        !self.task.is_finished()
    }

    /// An instance of `plugin` that is ready, if there is one. The plugin is the one called last now.
    pub(crate) fn take(&self, plugin: &Arc<Loaded>) -> Option<Instance> {
        let mut ready = self.shared.lock();
        let at = ready.iter().position(|other| is(&other.plugin, plugin))?;
        if at > 0
            && let Some(entry) = ready.remove(at)
        {
            ready.push_front(entry);
        }
        ready.front_mut()?.instances.pop()
    }

    /// After a call: throws `used` away and makes another ready.
    pub(crate) fn replace(&self, plugin: &Arc<Loaded>, used: Option<Instance>) {
        // The task ends with this.
        let _ = self.work.send(Work {
            used,
            plugin: Arc::downgrade(plugin),
        });
    }

    /// Gives up the instance that is needed least, for its slot.
    pub(crate) fn give_up_one(&self) -> Option<Slot> {
        let given_up = self
            .shared
            .lock()
            .iter_mut()
            .rev()
            .find_map(|entry| entry.instances.pop());
        given_up.map(Instance::into_slot)
    }

    /// Gives up those of versions that are no longer loaded.
    pub(crate) fn forget_unloaded(&self) {
        let mut gone = VecDeque::new();
        self.shared.lock().retain_mut(|entry| {
            let kept = entry.plugin.strong_count() > 0;
            if !kept {
                gone.push_back(std::mem::take(&mut entry.instances));
            }
            kept
        });
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Ready>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes instances of `plugin` until it has [`EACH`], at the cost of those called less recently.
    async fn fill(&self, pool: &Pool, plugin: &Arc<Loaded>) {
        while self.make_room(plugin) {
            let Some(slot) = pool.try_slot() else { return };
            // Why it cannot be made is for the call to say that needs it.
            let Ok(instance) = Instance::new(pool, plugin, slot).await else {
                return;
            };
            let mut ready = self.lock();
            if let Some(entry) = ready.iter_mut().find(|other| is(&other.plugin, plugin)) {
                entry.instances.push(instance);
            }
        }
    }

    /// Whether `plugin` can have another, making room for it.
    fn make_room(&self, plugin: &Arc<Loaded>) -> bool {
        let mut ready = self.lock();
        let at = ready
            .iter()
            .position(|other| is(&other.plugin, plugin))
            .unwrap_or_else(|| {
                ready.push_front(Ready {
                    plugin: Arc::downgrade(plugin),
                    instances: Vec::new(),
                });
                0
            });
        if ready
            .get(at)
            .is_none_or(|entry| entry.instances.len() >= EACH)
        {
            return false;
        }
        let total: usize = ready.iter().map(|entry| entry.instances.len()).sum();
        if total < self.most {
            return true;
        }
        // Someone who was called less recently than this one has to give one up.
        let mut later = ready.iter_mut().enumerate().skip(at + 1).rev();
        let given_up = later.find_map(|(_, entry)| entry.instances.pop());
        ready.retain(|entry| !entry.instances.is_empty() || is(&entry.plugin, plugin));
        given_up.is_some()
    }
}

fn is(weak: &Weak<Loaded>, plugin: &Arc<Loaded>) -> bool {
    std::ptr::eq(weak.as_ptr(), Arc::as_ptr(plugin))
}
