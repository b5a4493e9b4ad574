//! The callers that wait for a process.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::sync::Notify;

/// The callers that wait for a process.
#[derive(Default)]
pub(super) struct Demand {
    waiters: AtomicUsize,
    notify: Notify,
}

pub(super) struct Waiter<'a>(&'a Demand);

impl Demand {
    pub(super) fn waiter(&self) -> Waiter<'_> {
        self.waiters.fetch_add(1, SeqCst);
        self.notify.notify_one();
        Waiter(self)
    }

    /// Waits until a caller is waiting.
    pub(super) async fn wait_for_caller(&self) {
        while self.waiters.load(SeqCst) == 0 {
            self.notify.notified().await;
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.waiters.fetch_sub(1, SeqCst);
    }
}
