//! Work for plugins that may wait for the disk, or for hardware.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::bounds::BLOCKING_JOBS;

static PLACES: Semaphore = Semaphore::const_new(BLOCKING_JOBS);
/// Hardware has its own places, so a stuck bus does not keep others from the disk.
static HARDWARE_PLACES: Semaphore = Semaphore::const_new(BLOCKING_JOBS);

/// The places of one plugin: at most half of all. Its further jobs wait here, and not in front of those of other plugins.
/// Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct BlockingShare {
    disk: Arc<Semaphore>,
    hardware: Arc<Semaphore>,
}

impl Default for BlockingShare {
    fn default() -> Self {
        let half = || Arc::new(Semaphore::new(BLOCKING_JOBS / 2));
        BlockingShare {
            disk: half(),
            hardware: half(),
        }
    }
}

impl BlockingShare {
    /// Runs `work` where it may wait for the disk, once it is its turn; returns `None` if the supervisor stops before.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        run_in_share(&self.disk, &PLACES, work).await
    }

    /// Like [`Self::run`], for work that may wait for hardware.
    pub(crate) async fn run_on_hardware<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        run_in_share(&self.hardware, &HARDWARE_PLACES, work).await
    }
}

/// Runs the supervisor's own `work`, which may wait for hardware that a plugin has released, once it is its turn.
pub(crate) async fn blocking_on_hardware<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    blocking_in(&HARDWARE_PLACES, work).await
}

async fn run_in_share<R: Send + 'static>(
    share: &Arc<Semaphore>,
    places: &'static Semaphore,
    work: impl FnOnce() -> R + Send + 'static,
) -> Option<R> {
    // Taken until the work is done, even if nobody waits for its result any more.
    let own = Arc::clone(share).acquire_owned().await.ok()?;
    let work = move || {
        let _own = own;
        work()
    };
    blocking_in(places, work).await
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
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use tokio::task::JoinHandle;

    use super::*;

    /// Jobs that wait until the test lets them go.
    struct Jobs {
        let_go: Sender<()>,
        gone: Arc<Mutex<Receiver<()>>>,
        begun: Arc<AtomicUsize>,
    }

    impl Jobs {
        fn new() -> Jobs {
            let (let_go, gone) = channel();
            Jobs {
                let_go,
                gone: Arc::new(Mutex::new(gone)),
                begun: Arc::default(),
            }
        }

        fn begin(&self, share: &BlockingShare) -> JoinHandle<Option<()>> {
            let (share, gone, begun) = (share.clone(), self.gone.clone(), self.begun.clone());
            let work = move || {
                begun.fetch_add(1, SeqCst);
                let _ = gone.lock().unwrap().recv();
            };
            tokio::spawn(async move { share.run(work).await })
        }

        async fn until_begun(&self, number: usize) {
            while self.begun.load(SeqCst) < number {
                tokio::task::yield_now().await;
            }
        }
    }

    /// All plugins share the places, and so do the steps of this test.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_of_plugins_takes_few_threads_and_that_of_one_plugin_half_of_them() {
        let jobs = Jobs::new();
        let (one, other, third) = Default::default();
        let mut works: Vec<_> = (0..5 * BLOCKING_JOBS).map(|_| jobs.begin(&one)).collect();
        jobs.until_begun(BLOCKING_JOBS / 2).await;
        // Of another plugin, as many begin, although the first one began more before.
        works.extend((0..BLOCKING_JOBS).map(|_| jobs.begin(&other)));
        jobs.until_begun(BLOCKING_JOBS).await;
        // Other work of the supervisor continues, but no further work of plugins begins.
        works.push(jobs.begin(&third));
        tokio::task::spawn_blocking(|| {}).await.unwrap();
        assert_eq!(jobs.begun.load(SeqCst), BLOCKING_JOBS);
        let number = works.len();
        drop(jobs.let_go);
        for work in works {
            assert_eq!(work.await.unwrap(), Some(()));
        }
        assert_eq!(jobs.begun.load(SeqCst), number);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_that_was_begun_keeps_its_place_after_its_caller_has_gone() {
        let jobs = Jobs::new();
        let share = BlockingShare::default();
        let work = jobs.begin(&share);
        jobs.until_begun(1).await;
        work.abort();
        assert!(work.await.is_err());
        let free = share.disk.available_permits();
        assert_eq!(free, BLOCKING_JOBS / 2 - 1);
        drop(jobs.let_go);
        while share.disk.available_permits() == free {
            tokio::task::yield_now().await;
        }
    }
}
