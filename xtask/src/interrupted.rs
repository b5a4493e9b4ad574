//! Cleaning up on Ctrl-C, SIGTERM or a closed terminal, for chores that block while others work.

/// From now on such a signal runs `clean_up` and ends this process.
pub(crate) fn clean_up_when_interrupted(clean_up: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
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
        clean_up();
        std::process::exit(128 + signal);
    });
}

/// A runtime for a few requests to an engine.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
