//! The memory of all plugins' instances together. An instance's memory is counted as it grows, and given back when the
//! instance is thrown away: many small calls fit into the space of a few large ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use plugin_protocol::{Bound, PATIENCE};
use tokio::sync::Notify;

use crate::bounds::FIRST_MEMORY;

/// The memory that all plugins may use, in bytes.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    most: AtomicUsize,
    used: AtomicUsize,
    /// Notified when memory is given back.
    freed: Notify,
}

/// The share that the instances of one plugin use: at most half of the budget.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    budget: Arc<MemoryBudget>,
    used: AtomicUsize,
}

impl MemoryBudget {
    pub(crate) fn new(most: usize) -> MemoryBudget {
        MemoryBudget {
            most: AtomicUsize::new(most),
            used: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }

    /// Sets how many bytes there are from now on. Anyone who already uses more keeps it.
    pub(crate) fn set_most(&self, bytes: usize) {
        self.most.store(bytes, Relaxed);
        self.freed.notify_waiters();
    }

    /// Creates the share of a plugin, which is still empty.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<MemoryShare> {
        Arc::new(MemoryShare {
            budget: Arc::clone(self),
            used: AtomicUsize::new(0),
        })
    }
}

impl MemoryShare {
    /// Takes this many bytes, or takes none and returns the bound that they would exceed.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Bound> {
        let all = self.budget.most.load(Relaxed);
        if !add_within(&self.used, bytes, all / 2) {
            return Err(Bound::MemoryOfOne(all / 2));
        }
        if !add_within(&self.budget.used, bytes, all) {
            self.used.fetch_sub(bytes, Relaxed);
            return Err(Bound::MemoryOfAll(all));
        }
        Ok(())
    }

    /// Gives back bytes that were taken.
    pub(crate) fn give_back(&self, bytes: usize) {
        if bytes > 0 {
            self.used.fetch_sub(bytes, Relaxed);
            self.budget.used.fetch_sub(bytes, Relaxed);
            self.budget.freed.notify_waiters();
        }
    }

    /// Returns whether an instance can start.
    pub(crate) fn has_room(&self) -> bool {
        self.missing().is_none()
    }

    /// Waits until an instance can start, but no longer than [`PATIENCE`].
    pub(crate) async fn room(&self) -> Result<(), Bound> {
        let waiting = async {
            loop {
                // Registered before the check, so that memory freed after it is not missed.
                let mut freed = std::pin::pin!(self.budget.freed.notified());
                freed.as_mut().enable();
                if self.has_room() {
                    return;
                }
                freed.await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        match waited.err().and_then(|_| self.missing()) {
            Some(bound) => Err(bound),
            None => Ok(()),
        }
    }

    fn missing(&self) -> Option<Bound> {
        let all = self.budget.most.load(Relaxed);
        let is_left = |used: &AtomicUsize, most: usize| {
            used.load(Relaxed).saturating_add(FIRST_MEMORY) <= most
        };
        if !is_left(&self.used, all / 2) {
            return Some(Bound::MemoryOfOne(all / 2));
        }
        (!is_left(&self.budget.used, all)).then_some(Bound::MemoryOfAll(all))
    }
}

fn add_within(used: &AtomicUsize, bytes: usize, most: usize) -> bool {
    let add = |used: usize| used.checked_add(bytes).filter(|after| *after <= most);
    used.fetch_update(Relaxed, Relaxed, add).is_ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_plugin_has_half_of_it_and_all_have_no_more_than_there_is() {
        let budget = Arc::new(MemoryBudget::new(100));
        let [one, other, third] = [(); 3].map(|()| budget.share());
        assert_eq!(one.take(50), Ok(()));
        assert_eq!(one.take(1), Err(Bound::MemoryOfOne(50)));
        assert_eq!(other.take(40), Ok(()));
        assert_eq!(third.take(11), Err(Bound::MemoryOfAll(100)));
        assert_eq!(third.take(10), Ok(()));
        one.give_back(50);
        assert_eq!(third.take(40), Ok(()));
        budget.set_most(120);
        assert_eq!(one.take(31), Err(Bound::MemoryOfAll(120)));
        assert_eq!(one.take(30), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_finds_no_room_waits_and_is_then_told_which_bound_it_is() {
        let budget = Arc::new(MemoryBudget::new(4 * FIRST_MEMORY));
        let share = budget.share();
        assert_eq!(share.take(2 * FIRST_MEMORY), Ok(()));
        let waiting = tokio::spawn({
            let share = Arc::clone(&share);
            async move { share.room().await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        share.give_back(FIRST_MEMORY);
        assert_eq!(waiting.await.unwrap(), Ok(()));
        assert_eq!(share.take(1), Ok(()));
        assert_eq!(
            share.room().await,
            Err(Bound::MemoryOfOne(2 * FIRST_MEMORY))
        );
    }
}
