//! Cleaning up on Ctrl-C, SIGTERM or a closed terminal, for chores that block while others work.

use std::sync::{Mutex, MutexGuard, PoisonError};

type CleanUp = Box<dyn FnOnce() + Send>;

/// What is to be cleaned up; none until the first is added, when the watch begins.
static CLEAN_UPS: Mutex<Vec<CleanUp>> = Mutex::new(Vec::new());

/// From now on such a signal runs `clean_up`, after those that were added later, and ends this process.
pub(crate) fn clean_up_when_interrupted(clean_up: impl FnOnce() + Send + 'static) {
    let mut all = clean_ups();
    if all.is_empty() {
        std::thread::spawn(watch);
    }
    all.push(Box::new(clean_up));
}

fn clean_ups() -> MutexGuard<'static, Vec<CleanUp>> {
    CLEAN_UPS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() {
    let Ok(runtime) = runtime() else { return };
    let signal = runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt()).ok()?;
        let mut terminate = signal(SignalKind::terminate()).ok()?;
        let mut hangup = signal(SignalKind::hangup()).ok()?;
        tokio::select! {
            _ = interrupt.recv() => Some(2),
            _ = terminate.recv() => Some(15),
            _ = hangup.recv() => Some(1),
        }
    });
    let Some(signal) = signal else { return };
    drop(runtime);
    let all: Vec<CleanUp> = clean_ups().drain(..).collect();
    for clean_up in all.into_iter().rev() {
        clean_up();
    }
    std::process::exit(128 + signal);
}

/// A runtime for a few requests to an engine.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
