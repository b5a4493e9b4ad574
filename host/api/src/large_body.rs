//! Bodies longer than [`SMALL_BODY`](crate::bounds::SMALL_BODY) are in memory one at a time, and their memory is
//! returned to the system afterwards: otherwise the heap keeps the memory of many small values.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::Failure;
use crate::bounds::TURN_WITHIN;

/// The queue of large bodies.
#[derive(Clone)]
pub(crate) struct LargeBodies {
    place: Arc<Semaphore>,
    return_memory: Option<fn()>,
}

/// Held for as long as anything of a large body is in memory.
#[must_use = "the next large body is read as soon as this is dropped"]
pub(crate) struct LargeBodyTurn {
    return_memory: Option<fn()>,
    _place: OwnedSemaphorePermit,
}

impl LargeBodies {
    /// Creates the queue. `return_memory` is called when a turn is over.
    pub(crate) fn new(return_memory: Option<fn()>) -> Self {
        LargeBodies {
            place: Arc::new(Semaphore::new(1)),
            return_memory,
        }
    }

    /// Waits for a turn, in the order of the calls.
    ///
    /// # Errors
    /// Returns 503 if others take too long.
    pub(crate) async fn turn(&self) -> Result<LargeBodyTurn, Failure> {
        let place = tokio::time::timeout(TURN_WITHIN, self.place.clone().acquire_owned()).await;
        match place {
            Ok(Ok(place)) => Ok(LargeBodyTurn {
                return_memory: self.return_memory,
                _place: place,
            }),
            // It is never closed.
            Ok(Err(_)) | Err(_) => Err(Failure::unavailable(format!(
                "other large bodies took {} s to read, and there is memory for only one at a time: try again",
                TURN_WITHIN.as_secs()
            ))),
        }
    }
}

impl Drop for LargeBodyTurn {
    fn drop(&mut self) {
        if let Some(return_memory) = self.return_memory {
            return_memory();
        }
    }
}
