//! Cleaning up on Ctrl-C, SIGTERM or a closed terminal, for chores whose main thread is blocked.

use std::io;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

type CleanUp = Box<dyn FnOnce() + Send>;

/// The clean-up functions; `None` until the first one is added, which starts the watch.
static CLEAN_UPS: Mutex<Vec<CleanUp>> = Mutex::new(Vec::new());

/// Makes such a signal run `clean_up`, after those that were added later, and end this process.
pub(crate) fn clean_up_when_interrupted(clean_up: impl FnOnce() + Send + 'static) {
    let mut all = CLEAN_UPS.lock();
    if all.is_empty() {
        std::thread::spawn(watch);
    }
    all.push(Box::new(clean_up));
}

fn watch() {
    let Ok(runtime) = runtime() else { return };
    let signal = runtime.block_on(async { io::Result::Ok(Signals::listen()?.received().await) });
    let Ok(signal) = signal else { return };
    drop(runtime);
    let all: Vec<CleanUp> = CLEAN_UPS.lock().drain(..).collect();
    for clean_up in all.into_iter().rev() {
        clean_up();
    }
    std::process::exit(128 + signal);
}

/// Ctrl-C, SIGTERM and a closed terminal.
pub(crate) struct Signals([Signal; 3]);

impl Signals {
    /// Stops these signals from ending the process.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Signals([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    /// Waits for one of them, and returns its number.
    pub(crate) async fn received(&mut self) -> i32 {
        let Signals([interrupt, terminate, hangup]) = self;
        tokio::select! {
            _ = interrupt.recv() => 2,
            _ = terminate.recv() => 15,
            _ = hangup.recv() => 1,
        }
    }
}

/// A runtime for a few requests to an engine.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
