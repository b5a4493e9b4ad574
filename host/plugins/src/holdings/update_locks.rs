//! The update locks of all apps, while an instance holds them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::config::HeldLocks;

/// How long a call can hold the locks. A streamed answer may last for days, during which no app would be updated.
const LONGEST_HOLD: Duration = Duration::from_secs(300);

/// The locks that an instance holds; they are released when this is dropped, or after [`LONGEST_HOLD`].
pub(crate) struct Lock {
    locks: Arc<Mutex<Option<HeldLocks>>>,
    end: JoinHandle<()>,
}

impl Lock {
    /// Holds `locks` for the plugin. Must be called in a tokio runtime.
    pub(crate) fn new(locks: HeldLocks, plugin: Arc<str>) -> Self {
        let locks = Arc::new(Mutex::new(Some(locks)));
        let shared = Arc::clone(&locks);
        let end = tokio::spawn(async move {
            tokio::time::sleep(LONGEST_HOLD).await;
            give_back(&shared);
            let plugin: &str = &plugin;
            tracing::warn!(
                plugin,
                "the plugin held the update locks of all apps for {} s, the longest time allowed; the supervisor released them",
                LONGEST_HOLD.as_secs()
            );
        });
        Lock { locks, end }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.end.abort();
        // At once, not when the task is dropped.
        give_back(&self.locks);
    }
}

fn give_back(locks: &Mutex<Option<HeldLocks>>) {
    drop(locks.lock().take());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn locks_are_given_back_after_the_longest_hold_and_at_once_when_dropped() {
        let held = Arc::new(());
        let lock = Lock::new(Box::new(Arc::clone(&held)), "a".into());
        assert_eq!(Arc::strong_count(&held), 2);
        drop(lock);
        assert_eq!(Arc::strong_count(&held), 1);

        let _lock = Lock::new(Box::new(Arc::clone(&held)), "a".into());
        tokio::time::sleep(LONGEST_HOLD - Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&held), 2);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
