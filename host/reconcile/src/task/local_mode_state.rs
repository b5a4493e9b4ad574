//! The loop's state of local mode (docs/spec/device.md#local-mode).

use model::EngineKind;
use serde_json::Value;

use crate::local_mode::Snapshot;
use crate::persistence::LocalMode;
use crate::view::View;

#[derive(Debug)]
pub(super) struct LocalModeState {
    mode: LocalMode,
    /// The objects that existed when local mode was entered.
    snapshot: Snapshot,
    /// Whether the objects created in local mode are being removed.
    is_cleaning: bool,
    /// Whether local mode, once left, is entered again: the device was killed while leaving it, and has no cloud.
    reenters: bool,
}

impl LocalModeState {
    pub(super) fn new(mode: LocalMode, snapshot: Option<Value>, is_managed: bool) -> Self {
        let snapshot = snapshot.map(serde_json::from_value::<Snapshot>);
        LocalModeState {
            mode,
            // An unreadable snapshot cannot protect anything: then everything that exists now counts as older.
            snapshot: snapshot.and_then(Result::ok).unwrap_or_default(),
            is_cleaning: false,
            reenters: !is_managed && mode == LocalMode::Leaving,
        }
    }

    pub(super) fn mode(&self) -> LocalMode {
        self.mode
    }

    pub(super) fn is_on(&self) -> bool {
        self.mode == LocalMode::On
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.mode == LocalMode::Leaving
    }

    pub(super) fn is_off(&self) -> bool {
        self.mode == LocalMode::Off
    }

    /// Returns whether local mode, once left, is entered again.
    pub(super) fn reenters(&self) -> bool {
        self.reenters
    }

    pub(super) fn enter(&mut self) {
        self.mode = LocalMode::On;
    }

    /// Begins to leave local mode; it is off after [`Self::end_clean_up`].
    pub(super) fn leave(&mut self) {
        self.mode = LocalMode::Leaving;
    }

    /// Returns the objects that existed when local mode was entered.
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Adds the objects on engines that are not part of the snapshot yet and answer; returns whether there were any.
    pub(super) fn complete_snapshot(
        &mut self,
        view: &View,
        answers: impl Fn(EngineKind) -> bool,
    ) -> bool {
        let mut is_changed = false;
        for (engine, objects) in &view.engines {
            if answers(*engine) && !self.snapshot.has(*engine) {
                self.snapshot.add(*engine, objects);
                is_changed = true;
            }
        }
        is_changed
    }

    /// Returns the objects that must not be removed; `None` if the clean-up has begun already.
    pub(super) fn begin_clean_up(&mut self) -> Option<Snapshot> {
        let begins = !std::mem::replace(&mut self.is_cleaning, true);
        begins.then(|| std::mem::take(&mut self.snapshot))
    }

    /// Ends the clean-up. Local mode is off now, or on again, once.
    pub(super) fn end_clean_up(&mut self) {
        self.is_cleaning = false;
        self.mode = if std::mem::take(&mut self.reenters) {
            LocalMode::On
        } else {
            LocalMode::Off
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_a_cloud_that_was_killed_while_leaving_enters_local_mode_again_once() {
        for (is_managed, mode) in [(false, LocalMode::On), (true, LocalMode::Off)] {
            let mut state = LocalModeState::new(LocalMode::Leaving, None, is_managed);
            state.end_clean_up();
            assert_eq!(state.mode(), mode);
            state.leave();
            state.end_clean_up();
            assert!(state.is_off());
        }
    }

    #[test]
    fn the_clean_up_begins_once_each_time_that_local_mode_is_left() {
        let mut state = LocalModeState::new(LocalMode::On, None, true);
        for _ in 0..2 {
            state.leave();
            assert!(state.begin_clean_up().is_some());
            assert!(state.begin_clean_up().is_none());
            state.end_clean_up();
        }
    }

    #[test]
    fn local_mode_is_entered_at_once_and_left_in_two_steps() {
        let mut state = LocalModeState::new(LocalMode::Off, None, true);
        state.enter();
        assert!(state.is_on() && !state.is_off());
        state.leave();
        assert!(state.is_leaving() && !state.is_on() && !state.is_off());
        state.end_clean_up();
        assert!(state.is_off());
    }

    #[test]
    fn a_snapshot_that_cannot_be_read_is_an_empty_one() {
        let state = LocalModeState::new(LocalMode::On, Some(Value::from(1)), true);
        assert_eq!(*state.snapshot(), Snapshot::default());
    }
}
