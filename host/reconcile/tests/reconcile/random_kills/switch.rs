//! What kills a supervisor at one of its steps.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::device::{Image, Place};

/// Counts steps. At the one that it was set to, nothing on the engine goes on, and what is there is copied.
pub(super) struct KillSwitch {
    place: Place,
    steps: AtomicUsize,
    at: Option<usize>,
    is_off: AtomicBool,
    came: Notify,
    /// Taken already, where the step was a write of the store.
    image: Mutex<Option<Image>>,
}

impl KillSwitch {
    pub(super) fn new(place: Place, at: Option<usize>) -> Arc<KillSwitch> {
        Arc::new(KillSwitch {
            place,
            steps: AtomicUsize::new(0),
            at,
            is_off: AtomicBool::new(false),
            came: Notify::new(),
            image: Mutex::default(),
        })
    }

    /// Steps so far.
    pub(super) fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }

    /// Whether this step is the one.
    fn count(&self) -> bool {
        let number = self.steps.fetch_add(1, Ordering::SeqCst);
        Some(number) == self.at && !self.is_off.swap(true, Ordering::SeqCst)
    }

    /// A step of the engine. Once the supervisor is killed it never returns.
    pub(super) async fn pass(&self) {
        if self.count() {
            self.came.notify_one();
        }
        if self.is_off.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// A write of the store. It runs on the one thread that blocks, so no other write and no lock is under
    /// way.
    pub(super) fn pass_write(&self) {
        if self.count() {
            *self.image.lock().unwrap() = Some(self.place.image());
            self.came.notify_one();
        }
    }

    /// What a kill has left, once it has come.
    pub(super) async fn killed(self: &Arc<Self>) -> Image {
        self.came.notified().await;
        if let Some(image) = self.image.lock().unwrap().take() {
            return image;
        }
        // After whatever the one thread that blocks is about: in its middle nothing is whole.
        let switch = Arc::clone(self);
        let copying = tokio::task::spawn_blocking(move || switch.place.image());
        copying.await.unwrap()
    }
}
