//! The thread that interrupts guests: it advances the engine's epoch while any of them runs.
//!
//! If none has run for a while it sleeps until the next one does, so that an idle device is not woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::Engine;

use crate::clock::now;

/// The time between two ticks: how precisely CPU time is limited, and how long a guest can occupy a thread before it
/// has to let others run.
pub(crate) const TICK: Duration = Duration::from_millis(10);
/// After how many ticks without a guest the thread falls asleep. Waking it costs a call some microseconds.
const LINGER: u32 = 50;
/// If guests run without a tick for this long, something is wrong: a busy machine makes a thread wait, but not for so
/// long.
const STALLED: Duration = Duration::from_secs(10);

/// The ticking of one engine; it stops when this is dropped.
pub(crate) struct Ticker {
    shared: Arc<TickerState>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct TickerState {
    /// How many guests are running.
    running: AtomicUsize,
    /// Whether any guest has begun since the last tick.
    recent: AtomicBool,
    asleep: AtomicBool,
    /// When it last ticked or was woken, in nanoseconds.
    ticked: AtomicU64,
    stop: AtomicBool,
}

/// A guest is running as long as this exists.
pub(crate) struct TickerGuard<'a>(&'a TickerState);

impl Ticker {
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Ticker> {
        let shared = Arc::<TickerState>::default();
        let (weak, of_thread) = (engine.weak(), Arc::clone(&shared));
        let tick = move || {
            while let Some(engine) = weak.upgrade() {
                if of_thread.stop.load(SeqCst) {
                    return;
                }
                engine.increment_epoch();
                of_thread.ticked.store(now(), SeqCst);
                drop(engine);
                of_thread.wait();
            }
        };
        let thread = thread::Builder::new()
            .name("plugin-ticker".to_owned())
            .stack_size(64 << 10)
            .spawn(tick)?;
        Ok(Ticker { shared, thread })
    }

    /// Marks a guest as running from now on.
    pub(crate) fn run(&self) -> TickerGuard<'_> {
        self.shared.running.fetch_add(1, SeqCst);
        self.shared.recent.store(true, SeqCst);
        if self.shared.asleep.load(SeqCst) && self.shared.asleep.swap(false, SeqCst) {
            self.shared.ticked.store(now(), SeqCst);
            self.thread.thread().unpark();
        }
        TickerGuard(&self.shared)
    }
}

impl Ticker {
    /// Returns what prevents it from interrupting guests.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.thread.is_finished() {
            return Some("the thread that interrupts plugins has ended".to_owned());
        }
        let since = now().saturating_sub(self.shared.ticked.load(SeqCst));
        let since = Duration::from_nanos(since);
        let runs = self.shared.running.load(SeqCst) > 0 && !self.shared.asleep.load(SeqCst);
        (runs && since > STALLED).then(|| {
            let seconds = since.as_secs();
            format!("plugins are running, but the thread that interrupts them has been stuck for {seconds} s")
        })
    }
}

impl TickerState {
    /// Waits until the next tick.
    fn wait(&self) {
        for _ in 0..LINGER {
            thread::sleep(TICK);
            if self.recent.swap(false, SeqCst) || self.running.load(SeqCst) > 0 {
                return;
            }
        }
        self.asleep.store(true, SeqCst);
        // A guest that began before it could see that this thread sleeps is already running.
        if self.running.load(SeqCst) > 0 {
            self.asleep.store(false, SeqCst);
        }
        while self.asleep.load(SeqCst) && !self.stop.load(SeqCst) {
            thread::park();
        }
    }
}

impl Drop for TickerGuard<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        self.thread.thread().unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticker_without_its_thread_is_a_problem() {
        let engine = Engine::default();
        let ticker = Ticker::start(&engine).unwrap();
        drop(ticker.run());
        assert_eq!(ticker.problem(), None);
        // The ticking ends with its engine.
        drop(engine);
        let running = ticker.run();
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while ticker.problem().is_none() {
            assert!(std::time::Instant::now() < deadline, "it goes on");
            thread::yield_now();
        }
        drop(running);
        assert!(ticker.problem().unwrap().contains("has ended"));
    }
}
