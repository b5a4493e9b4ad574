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
    /// Notified when memory is given back, or an instance was prepared.
    changed: Notify,
}

/// The share that the instances of one plugin use: at most half of the budget.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    budget: Arc<MemoryBudget>,
    used: AtomicUsize,
    /// How much an instance takes to start, in bytes, according to the last one.
    start: AtomicUsize,
}

impl MemoryBudget {
    pub(crate) fn new(most: usize) -> MemoryBudget {
        MemoryBudget {
            most: AtomicUsize::new(most),
            used: AtomicUsize::new(0),
            changed: Notify::new(),
        }
    }

    /// Sets how many bytes there are from now on. Anyone who already uses more keeps it.
    pub(crate) fn set_most(&self, bytes: usize) {
        self.most.store(bytes, Relaxed);
        self.changed.notify_waiters();
    }

    /// Creates the share of a plugin, which is still empty.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<MemoryShare> {
        Arc::new(MemoryShare {
            budget: Arc::clone(self),
            used: AtomicUsize::new(0),
            start: AtomicUsize::new(FIRST_MEMORY),
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
            self.budget.changed.notify_waiters();
        }
    }

    /// Records how much an instance took to start, or would have taken if there had been room, in bytes.
    pub(crate) fn note_start(&self, bytes: usize) {
        self.start.store(bytes.max(FIRST_MEMORY), Relaxed);
    }

    /// Has everybody who waits for memory look again: an instance was prepared.
    pub(crate) fn wake_waiters(&self) {
        self.budget.changed.notify_waiters();
    }

    /// Waits until `is_enough`, which may take what it finds, but no longer than [`PATIENCE`]. If an instance cannot
    /// start even then, returns the bound that is reached.
    pub(crate) async fn room(&self, mut is_enough: impl FnMut() -> bool) -> Result<(), Bound> {
        let waiting = async {
            loop {
                // Registered before the check, so that memory freed after it is not missed.
                let mut changed = std::pin::pin!(self.budget.changed.notified());
                changed.as_mut().enable();
                if is_enough() {
                    return;
                }
                changed.await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        match waited.err().and_then(|_| self.missing()) {
            Some(bound) => Err(bound),
            None => Ok(()),
        }
    }

    /// Returns the bound that keeps another instance from starting.
    pub(crate) fn missing(&self) -> Option<Bound> {
        let all = self.budget.most.load(Relaxed);
        // One that is alone may always try, whatever the last one took.
        let start = self.start.load(Relaxed).min(all / 2);
        let is_left =
            |used: &AtomicUsize, most: usize| used.load(Relaxed).saturating_add(start) <= most;
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
    use std::sync::atomic::AtomicBool;
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

    async fn room(share: &MemoryShare) -> Result<(), Bound> {
        share.room(|| share.missing().is_none()).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_without_room_gets_an_error_that_names_the_bound() {
        let budget = Arc::new(MemoryBudget::new(4 * FIRST_MEMORY));
        let share = budget.share();
        assert_eq!(share.take(2 * FIRST_MEMORY), Ok(()));
        let waiting = tokio::spawn({
            let share = Arc::clone(&share);
            async move { room(&share).await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        share.give_back(FIRST_MEMORY);
        assert_eq!(waiting.await.unwrap(), Ok(()));
        assert_eq!(share.take(1), Ok(()));
        assert_eq!(
            room(&share).await,
            Err(Bound::MemoryOfOne(2 * FIRST_MEMORY))
        );
    }

    #[test]
    fn an_instance_starts_when_there_is_as_much_as_the_last_one_took_or_lacked() {
        let budget = Arc::new(MemoryBudget::new(16 * FIRST_MEMORY));
        let (share, other) = (budget.share(), budget.share());
        assert_eq!(share.take(6 * FIRST_MEMORY), Ok(()));
        assert_eq!(share.missing(), None);
        share.note_start(3 * FIRST_MEMORY);
        let of_one = Bound::MemoryOfOne(8 * FIRST_MEMORY);
        assert_eq!(share.missing(), Some(of_one));
        assert_eq!(other.missing(), None, "it has a share of its own");
        share.give_back(FIRST_MEMORY);
        assert_eq!(share.missing(), None);
        assert_eq!(other.take(8 * FIRST_MEMORY + 1), Err(of_one));
        assert_eq!(other.take(8 * FIRST_MEMORY), Ok(()));
        // The third takes the rest.
        let third = budget.share();
        assert_eq!(third.take(FIRST_MEMORY), Ok(()));
        let of_all = Bound::MemoryOfAll(16 * FIRST_MEMORY);
        assert_eq!(share.missing(), Some(of_all));
        // A start of less than most plugins take is one like most.
        share.note_start(1);
        assert_eq!(share.missing(), None);
        assert_eq!(third.take(FIRST_MEMORY), Ok(()));
        assert_eq!(third.take(1), Ok(()));
        assert_eq!(share.missing(), Some(of_all));
        // Whatever the last one lacked, one that is alone may try.
        let alone = Arc::new(MemoryBudget::new(16 * FIRST_MEMORY)).share();
        alone.note_start(100 * FIRST_MEMORY);
        assert_eq!(alone.missing(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_for_memory_checks_again_when_an_instance_is_ready() {
        let budget = Arc::new(MemoryBudget::new(2 * FIRST_MEMORY));
        let share = budget.share();
        assert_eq!(share.take(FIRST_MEMORY), Ok(()));
        let is_prepared = Arc::new(AtomicBool::new(false));
        let waiting = tokio::spawn({
            let (share, is_prepared) = (Arc::clone(&share), Arc::clone(&is_prepared));
            async move { share.room(|| is_prepared.load(Relaxed)).await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        is_prepared.store(true, Relaxed);
        share.wake_waiters();
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }
}
