//! The action `identify` (`POST /v1/blink`): one pattern at a time, in the background, for a window that each further
//! request extends.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plugin_protocol::text::{LONGEST, one_line};
use plugin_protocol::{ActionAnswer, ActionCall, Failure, Origin};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::actions::{ActionError, Actions};
use crate::loaded::LoadedPlugin;
use plugin_manifest::Action;

/// How long the device identifies itself after the latest request (docs/spec/device.md#v1-blink).
const WINDOW: Duration = Duration::from_secs(15);
/// How long after the window a provider is ended by force.
const GRACE: Duration = Duration::from_secs(2);

/// The action. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Identify {
    shared: Arc<IdentifyState>,
}

struct IdentifyState {
    actions: Actions,
    state: Mutex<State>,
    /// The result of the last run; changes when a run ends.
    ended: watch::Sender<Result<(), String>>,
}

struct State {
    /// When the window ends.
    until: Instant,
    /// How long it lasts from the latest request.
    window: Duration,
    /// The run that is under way.
    run: Option<JoinHandle<()>>,
    /// Whether the provider has seen that the window is over: further requests need a new run.
    over: bool,
    /// Whether there has been a request since then.
    again: bool,
}

impl Identify {
    pub(crate) fn new(actions: &Actions) -> Identify {
        let state = State {
            until: Instant::now(),
            window: WINDOW,
            run: None,
            over: false,
            again: false,
        };
        let shared = IdentifyState {
            actions: actions.clone(),
            state: Mutex::new(state),
            ended: watch::Sender::new(Ok(())),
        };
        Identify {
            shared: Arc::new(shared),
        }
    }

    /// Makes the device identify itself from now until [`WINDOW`] has passed, for a caller of this `origin`, or extends
    /// the current run, whoever started it.
    pub(crate) fn start(&self, origin: Origin) {
        self.start_for(origin, WINDOW);
    }

    /// Like [`Self::start`], with a window of this length.
    pub(crate) fn start_for(&self, origin: Origin, window: Duration) {
        let mut state = self.shared.state.lock();
        state.until = Instant::now() + window;
        state.window = window;
        if state.run.is_some() {
            state.again = state.over;
            return;
        }
        if self.shared.actions.provider(Action::Identify).is_none() {
            tracing::info!(
                "no plugin provides `identify`: the device has nothing to identify itself with"
            );
            return;
        }
        state.over = false;
        let shared = Arc::clone(&self.shared);
        state.run = Some(tokio::spawn(async move { shared.run(origin).await }));
    }

    /// Returns how much of the window is left, in milliseconds.
    pub(crate) fn remaining_ms(&self) -> u32 {
        let mut state = self.shared.state.lock();
        let left = whole_milliseconds(state.until.saturating_duration_since(Instant::now()));
        state.over |= left == 0;
        left
    }

    /// Waits until the current run has ended, and returns its result. Without a run, nothing identifies the device.
    pub(crate) async fn ended(&self) -> Result<(), String> {
        let mut ended = self.shared.ended.subscribe();
        if self.shared.state.lock().run.is_none() {
            return match self.shared.actions.provider(Action::Identify) {
                // It has already ended.
                Some(_) => ended.borrow().clone(),
                None => Err(ActionError::NoProvider(Action::Identify.into()).to_string()),
            };
        }
        if ended.changed().await.is_err() {
            return Ok(());
        }
        ended.borrow().clone()
    }

    /// Ends the current run; the provider's LEDs are restored when this returns.
    pub(crate) async fn stop(&self) {
        let run = self.shared.state.lock().run.take();
        if let Some(run) = run {
            run.abort();
            let _ = run.await;
        }
    }
}

impl IdentifyState {
    /// Runs the provider, and again if a request came too late for it to notice.
    async fn run(&self, origin: Origin) {
        loop {
            let outcome = match self.actions.provider(Action::Identify) {
                Some(provider) => self.call(&provider, origin.clone()).await,
                None => Ok(()),
            };
            let mut state = self.state.lock();
            if state.again {
                (state.again, state.over) = (false, false);
                continue;
            }
            state.run = None;
            let _ = self.ended.send_replace(outcome);
            return;
        }
    }

    /// Makes one call in a new instance, ended by force soon after the window.
    async fn call(&self, provider: &LoadedPlugin, origin: Origin) -> Result<(), String> {
        let name = provider.manifest.name.as_str();
        let _timed = provider.counters.called();
        let outcome = tokio::select! {
            outcome = call(provider, origin) => outcome,
            limit = self.past_window() => Err(Failure::Wall { limit }),
        };
        match outcome {
            // This is not the plugin's own failure: not every device has a way to identify itself.
            Ok(Ok(())) if self.state.lock().until > Instant::now() => Err(format!(
                "the plugin `{name}` has nothing to identify this device with"
            )),
            Ok(Ok(())) => Ok(()),
            Ok(Err(message)) => {
                let message = one_line(&message, LONGEST);
                provider.failed_itself(&format!("`identify` failed: {message}"));
                Err(message)
            }
            Err(failure) => {
                provider.failed(&failure);
                Err(failure.message(name))
            }
        }
    }

    /// Waits until the window and the grace period are over, however often the window is extended.
    async fn past_window(&self) -> Duration {
        loop {
            let (end, window) = {
                let state = self.state.lock();
                (state.until + GRACE, state.window)
            };
            if Instant::now() >= end {
                return window + GRACE;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

/// Returns a time in milliseconds, rounded up: a provider that sees 0 returns, and one that returned while part of a
/// millisecond was left would count as having nothing to identify the device with.
fn whole_milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

async fn call(provider: &LoadedPlugin, origin: Origin) -> Result<Result<(), String>, Failure> {
    match provider.act(origin, ActionCall::Identify).await? {
        ActionAnswer::Identify(answer) => Ok(answer),
        _ => Err(Failure::BadAnswer("it answered another call".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_over_only_once_nothing_of_it_is_left() {
        for (left, expected) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::from_micros(1000), 1),
            (Duration::from_micros(1001), 2),
            (Duration::MAX, u32::MAX),
        ] {
            assert_eq!(whole_milliseconds(left), expected, "{left:?}");
        }
    }
}
