//! Work for plugins that may wait for the disk, or for hardware.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::bounds::BLOCKING_JOBS;

static PLACES: Semaphore = Semaphore::const_new(BLOCKING_JOBS);
/// Hardware has its own places, so a stuck bus does not keep others from the disk.
static HARDWARE_PLACES: Semaphore = Semaphore::const_new(BLOCKING_JOBS);

/// The places of one plugin: at most half of all. Its further jobs wait here, and not in front of those of other plugins.
/// Clones share it, as all versions of the plugin do.
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
impl BlockingShare {
    /// Returns whether the jobs of `other` take the same places.
    pub(crate) fn is_shared_with(&self, other: &BlockingShare) -> bool {
        Arc::ptr_eq(&self.disk, &other.disk) && Arc::ptr_eq(&self.hardware, &other.hardware)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use tokio::task::JoinHandle;

    use super::*;

    /// Jobs of one plugin that wait until the test lets them go.
    struct Jobs {
        share: BlockingShare,
        #[expect(dead_code, reason = "lets the jobs go when it is dropped")]
        let_go: Sender<()>,
        gone: Arc<Mutex<Receiver<()>>>,
        begun: Arc<AtomicUsize>,
    }

    impl Jobs {
        fn new() -> Jobs {
            let (let_go, gone) = channel();
            Jobs {
                share: BlockingShare::default(),
                let_go,
                gone: Arc::new(Mutex::new(gone)),
                begun: Arc::default(),
            }
        }

        fn begin(&self) -> JoinHandle<Option<()>> {
            let (share, gone, begun) = (self.share.clone(), self.gone.clone(), self.begun.clone());
            let work = move || {
                begun.fetch_add(1, SeqCst);
                let _ = gone.lock().unwrap().recv();
            };
            tokio::spawn(async move { share.run(work).await })
        }

        async fn until_begun(&self, number: usize) {
            until(|| self.begun.load(SeqCst) >= number).await;
        }
    }

    async fn until(holds: impl Fn() -> bool) {
        let waiting = async {
            while !holds() {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(240), waiting).await;
        waited.unwrap();
    }

    /// The plugins of all tests share the places, so this is one test.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_of_plugins_takes_few_threads_and_that_of_one_plugin_half_of_them() {
        let [one, other, third] = [(); 3].map(|()| Jobs::new());
        let mut works: Vec<_> = (0..5 * BLOCKING_JOBS).map(|_| one.begin()).collect();
        one.until_begun(BLOCKING_JOBS / 2).await;
        // That of another plugin begins, although the first one requested more before.
        works.extend((0..BLOCKING_JOBS).map(|_| other.begin()));
        other.until_begun(BLOCKING_JOBS / 2).await;
        // Other work of the supervisor continues, but no further work of plugins begins.
        works.push(third.begin());
        tokio::task::spawn_blocking(|| {}).await.unwrap();
        let begun = [&one, &other, &third].map(|jobs| jobs.begun.load(SeqCst));
        assert_eq!(begun, [BLOCKING_JOBS / 2, BLOCKING_JOBS / 2, 0]);

        // Work that was begun keeps its place after its caller has gone.
        works.remove(0).abort();
        tokio::task::spawn_blocking(|| {}).await.unwrap();
        assert_eq!(one.share.disk.available_permits(), 0);
        drop((one, other, third));
        for work in works {
            assert_eq!(work.await.unwrap(), Some(()));
        }
    }
}
