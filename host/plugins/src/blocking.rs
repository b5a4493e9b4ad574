//! Work for plugins that may wait for the disk, or for hardware.

use tokio::sync::Semaphore;

/// How many such jobs can be under way at a time. The other threads remain for the supervisor's own work.
const AT_ONCE: usize = 4;

static PLACES: Semaphore = Semaphore::const_new(AT_ONCE);
/// Hardware has its own places, so a stuck bus does not keep others from the disk.
static HARDWARE_PLACES: Semaphore = Semaphore::const_new(AT_ONCE);

/// Runs `work` where it may wait for the disk, once it is its turn; returns `None` if the supervisor stops before.
pub(crate) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    blocking_in(&PLACES, work).await
}

/// Like [`blocking`], for work that may wait for hardware.
pub(crate) async fn blocking_on_hardware<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    blocking_in(&HARDWARE_PLACES, work).await
}

async fn blocking_in<R: Send + 'static>(
    places: &'static Semaphore,
    work: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    let place = places.acquire().await.ok()?;
    let work = move || {
        let _place = place;
        work()
    };
    tokio::task::spawn_blocking(work).await.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_of_plugins_that_waits_takes_few_threads() {
        let (let_go, gone) = channel::<()>();
        let gone = Arc::new(Mutex::new(gone));
        let begun = Arc::new(AtomicUsize::new(0));
        let works: Vec<_> = (0..5 * AT_ONCE)
            .map(|_| {
                let (gone, begun) = (gone.clone(), begun.clone());
                tokio::spawn(blocking(move || {
                    begun.fetch_add(1, SeqCst);
                    let _ = gone.lock().unwrap().recv();
                }))
            })
            .collect();
        while begun.load(SeqCst) < AT_ONCE {
            tokio::task::yield_now().await;
        }
        // Other work of the supervisor continues, but no further work of plugins begins.
        tokio::task::spawn_blocking(|| {}).await.unwrap();
        assert_eq!(begun.load(SeqCst), AT_ONCE);
        drop(let_go);
        for work in works {
            assert_eq!(work.await.unwrap(), Some(()));
        }
        assert_eq!(begun.load(SeqCst), 5 * AT_ONCE);
    }
}
