//! Kills a supervisor at one of its steps.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::device::{Image, Place};

/// Counts steps. At the chosen step, all work on the engine stops, and the device's state is copied.
pub(super) struct KillSwitch {
    place: Place,
    steps: AtomicUsize,
    at: Option<usize>,
    is_off: AtomicBool,
    came: Notify,
    /// Taken already if the step was a write to the store.
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

    /// Returns the number of steps so far.
    pub(super) fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }

    /// Returns whether this step is the chosen one.
    fn count(&self) -> bool {
        let number = self.steps.fetch_add(1, Ordering::SeqCst);
        Some(number) == self.at && !self.is_off.swap(true, Ordering::SeqCst)
    }

    /// Passes a step of the engine. Once the supervisor is killed, it never returns.
    pub(super) async fn pass(&self) {
        if self.count() {
            self.came.notify_one();
        }
        if self.is_off.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// Passes a write to the store. It runs on the one blocking thread, so no other write and no lock operation is
    /// under way.
    pub(super) fn pass_write(&self) {
        if self.count() {
            *self.image.lock().unwrap() = Some(self.place.image());
            self.came.notify_one();
        }
    }

    /// Returns the state after a kill, once it has occurred.
    pub(super) async fn killed(self: &Arc<Self>) -> Image {
        self.came.notified().await;
        if let Some(image) = self.image.lock().unwrap().take() {
            return image;
        }
        // After the current work of the one blocking thread: before it ends, the state may be incomplete.
        let switch = Arc::clone(self);
        let copying = tokio::task::spawn_blocking(move || switch.place.image());
        copying.await.unwrap()
    }
}
