//! How much CPU time a service gets.
//!
//! This has two parts. While a guest computes, the engine's epoch is incremented at each tick, and the guest yields to
//! the tasks of its own thread; while it waits, nothing ticks, so an idle service never wakes the machine. A guest with
//! a CPU limit is not polled again until it has waited for the time that it used: this needs no control groups.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;
use tokio::time::Sleep;
use wasmtime::Engine;

/// The longest time for which a guest computes without yielding.
const TICK: Duration = Duration::from_millis(10);
/// How far a guest that was idle may exceed its limit: the same as Docker allows.
const PERIOD: Duration = Duration::from_millis(100);

/// Whether the guest is computing.
#[derive(Default)]
pub(crate) struct Activity {
    busy: AtomicBool,
    /// Whether [`Activity::tick`] is waiting for `wake`.
    parked: AtomicBool,
    wake: Notify,
}

impl Activity {
    /// Increments the epoch of `engine` while the guest computes.
    pub(crate) async fn tick(&self, engine: &Engine) -> Infallible {
        loop {
            if !self.busy.load(Ordering::SeqCst) {
                self.parked.store(true, Ordering::SeqCst);
                // The guest may have begun after the check and before the store; then nobody will wake us.
                if !self.busy.load(Ordering::SeqCst) {
                    self.wake.notified().await;
                }
                self.parked.store(false, Ordering::SeqCst);
            }
            tokio::time::sleep(TICK).await;
            engine.increment_epoch();
        }
    }

    fn begin(&self) {
        self.busy.store(true, Ordering::SeqCst);
        if self.parked.swap(false, Ordering::SeqCst) {
            self.wake.notify_one();
        }
    }

    fn end(&self) {
        self.busy.store(false, Ordering::SeqCst);
    }
}

/// A guest's run, limited to a share of one CPU.
pub(crate) struct PacedGuest<F> {
    guest: Pin<Box<F>>,
    activity: Arc<Activity>,
    share: Option<Share>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> PacedGuest<F> {
    /// `nano_cpus` are CPUs in billionths; 0 means no limit, and so does one CPU or more, since a service computes on
    /// one thread.
    pub(crate) fn new(guest: F, activity: Arc<Activity>, nano_cpus: u64) -> Self {
        PacedGuest {
            guest: Box::pin(guest),
            activity,
            share: Share::from_nano_cpus(nano_cpus),
            pause: None,
        }
    }
}

impl<F: Future> Future for PacedGuest<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if let Some(pause) = &mut this.pause {
            if pause.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            this.pause = None;
        }
        let before = this.share.is_some().then(thread_time);
        this.activity.begin();
        let polled = this.guest.as_mut().poll(context);
        this.activity.end();
        if polled.is_pending()
            && let (Some(share), Some(before)) = (&mut this.share, before)
            && let Some(pause) = share.spend(thread_time().saturating_sub(before), Instant::now())
        {
            let mut pause = Box::pin(tokio::time::sleep(pause));
            // Registers the wake-up; a wake-up of the guest also gets here, and finds the pause.
            if pause.as_mut().poll(context).is_pending() {
                this.pause = Some(pause);
            } else {
                context.waker().wake_by_ref();
            }
        }
        polled
    }
}

/// An account of CPU time that fills up as time passes.
struct Share {
    /// CPU seconds per second, below 1.
    rate: f64,
    /// CPU seconds; if below 0, the guest has to wait.
    saved: f64,
    counted: Instant,
}

impl Share {
    fn from_nano_cpus(nano_cpus: u64) -> Option<Self> {
        if nano_cpus == 0 || nano_cpus >= 1_000_000_000 {
            return None;
        }
        let rate = nano_cpus as f64 / 1e9;
        Some(Share {
            rate,
            saved: rate * PERIOD.as_secs_f64(),
            counted: Instant::now(),
        })
    }

    /// Deducts `used` from the account, and returns how long to wait if nothing is left.
    fn spend(&mut self, used: Duration, now: Instant) -> Option<Duration> {
        let passed = now.saturating_duration_since(self.counted).as_secs_f64();
        self.counted = now;
        self.saved = (self.saved + passed * self.rate).min(self.rate * PERIOD.as_secs_f64());
        self.saved -= used.as_secs_f64();
        (self.saved < 0.0).then(|| Duration::from_secs_f64(-self.saved / self.rate))
    }
}

/// CPU time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_lets_through_its_part_of_the_time() {
        let begin = Instant::now();
        let mut share = Share::from_nano_cpus(250_000_000).unwrap();
        share.counted = begin;
        let slice = Duration::from_millis(10);
        let (mut now, mut used) = (begin, Duration::ZERO);
        while now < begin + Duration::from_secs(10) {
            now += slice;
            used += slice;
            now += share.spend(slice, now).unwrap_or_default();
        }
        let part = used.as_secs_f64() / (now - begin).as_secs_f64();
        assert!((0.24..0.26).contains(&part), "{part}");
    }

    #[test]
    fn idle_time_is_not_saved_up_for_long() {
        let begin = Instant::now();
        let mut share = Share::from_nano_cpus(500_000_000).unwrap();
        share.counted = begin;
        let later = begin + Duration::from_secs(3600);
        assert!(share.spend(Duration::from_millis(50), later).is_none());
        assert!(share.spend(Duration::from_millis(10), later).is_some());
    }

    #[test]
    fn no_limit_and_whole_cpus_need_no_account() {
        for nano_cpus in [0, 1_000_000_000, 4_000_000_000] {
            assert!(Share::from_nano_cpus(nano_cpus).is_none(), "{nano_cpus}");
        }
    }
}
