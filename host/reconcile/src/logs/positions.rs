//! The positions of the cloud's reader in each container's output, kept across restarts of the supervisor: output of
//! services while it is down is sent to the cloud once it is up again, and earlier output is not sent twice.
//!
//! The positions on disk are those of the last orderly shutdown, or otherwise up to a minute old: then the lines of
//! that minute are sent again rather than lost.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{LogLine, LogsFrom};
use model::ContainerId;
use parking_lot::Mutex;
use store::{LogPosition, Store};
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;

/// The interval between two writes: a device's disk wears out.
const KEEP: Duration = Duration::from_secs(60);
/// The maximum number of containers with a position; those with the latest output are kept.
const MOST: usize = 200;

/// The positions of all containers.
#[derive(Default)]
pub(super) struct Positions(Mutex<PositionTable>);

#[derive(Default)]
struct PositionTable {
    of: BTreeMap<ContainerId, LogPosition>,
    changed: bool,
}

impl Positions {
    pub(super) fn new(of: BTreeMap<ContainerId, LogPosition>) -> Self {
        Positions(Mutex::new(PositionTable { of, changed: false }))
    }

    /// Records that the reader has received a line with this timestamp.
    pub(super) fn passed(&self, container: &ContainerId, timestamp_ms: i64) {
        let mut table = self.0.lock();
        table.changed = true;
        match table.of.get_mut(container) {
            Some(position) => *position = after(Some(*position), timestamp_ms),
            None => {
                table
                    .of
                    .insert(container.clone(), after(None, timestamp_ms));
            }
        }
        if table.of.len() > MOST {
            let oldest = table.of.iter().min_by_key(|(_, at)| at.timestamp_ms);
            let oldest = oldest.map(|(container, _)| container.clone());
            if let Some(oldest) = oldest {
                table.of.remove(&oldest);
            }
        }
    }

    pub(super) fn get(&self, container: &ContainerId) -> Option<LogPosition> {
        self.0.lock().of.get(container).copied()
    }

    /// Forgets all positions: nobody needs the output so far.
    pub(super) fn forget(&self) {
        let mut table = self.0.lock();
        table.changed |= !table.of.is_empty();
        table.of.clear();
    }

    /// Writes the positions if they have changed since the last write. Blocks.
    pub(super) fn keep(&self, store: &Store) {
        let of = {
            let mut table = self.0.lock();
            if !std::mem::take(&mut table.changed) {
                return;
            }
            table.of.clone()
        };
        if let Err(error) = store.set_log_positions(&of) {
            tracing::warn!(
                %error,
                "failed to store how far the logs were read; after a restart lines may reach the cloud twice"
            );
        }
    }
}

/// Returns the position of a reader that was at `position` and then received a line with this timestamp.
pub(super) fn after(position: Option<LogPosition>, timestamp_ms: i64) -> LogPosition {
    match position {
        Some(position) if position.timestamp_ms == timestamp_ms => LogPosition {
            lines: position.lines.saturating_add(1),
            ..position
        },
        _ => LogPosition {
            timestamp_ms,
            lines: 1,
        },
    }
}

/// Writes the positions regularly, until `stop`.
pub(super) async fn keeping(
    positions: std::sync::Arc<Positions>,
    store: Store,
    stop: CancellationToken,
) {
    while stop
        .run_until_cancelled(tokio::time::sleep(KEEP))
        .await
        .is_some()
    {
        let (positions, store) = (positions.clone(), store.clone());
        let _ = tokio::task::spawn_blocking(move || positions.keep(&store)).await;
    }
}

/// Skips the lines that a reader already has, in a stream that begins at the time of its position.
pub(super) struct ResumePoint {
    timestamp_ms: i64,
    left: u32,
}

impl ResumePoint {
    /// Returns the start of the stream to open, and the lines to skip in it. A position in the future comes from a
    /// clock that was wrong.
    pub(super) fn after(position: LogPosition) -> (LogsFrom, Self) {
        let timestamp_ms = position.timestamp_ms.min(now_ms());
        let left = if timestamp_ms == position.timestamp_ms {
            position.lines
        } else {
            0
        };
        (
            LogsFrom::Since(timestamp_ms),
            ResumePoint { timestamp_ms, left },
        )
    }

    /// Returns whether the reader already has this line.
    pub(super) fn has(&mut self, line: &LogLine) -> bool {
        let has = self.left > 0 && line.timestamp_ms == self.timestamp_ms;
        // Lines with the same timestamp are adjacent.
        self.left = if has { self.left - 1 } else { 0 };
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(timestamp_ms: i64) -> LogLine {
        LogLine {
            message: String::new(),
            timestamp_ms,
            stderr: false,
        }
    }

    #[test]
    fn a_reader_goes_on_behind_the_last_line_that_it_has() {
        let positions = Positions::default();
        let container: ContainerId = "c1".parse().unwrap();
        for at in [10, 20, 20] {
            positions.passed(&container, at);
        }
        let (from, mut resumed) = ResumePoint::after(positions.get(&container).unwrap());
        assert_eq!(from, LogsFrom::Since(20));
        let has: Vec<_> = [20, 20, 20, 30, 20].map(|at| resumed.has(&line(at))).into();
        assert_eq!(has, [true, true, false, false, false]);
        positions.forget();
        assert_eq!(positions.get(&container), None);
    }

    #[test]
    fn a_position_of_a_clock_that_was_ahead_holds_nothing_back() {
        let ahead = LogPosition {
            timestamp_ms: i64::MAX,
            lines: 3,
        };
        let (LogsFrom::Since(since), mut resumed) = ResumePoint::after(ahead) else {
            panic!("a time")
        };
        assert!(since <= now_ms());
        assert!(!resumed.has(&line(since)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let positions = Positions::default();
        for number in 0..300_i64 {
            positions.passed(&format!("c{number}").parse().unwrap(), number);
        }
        assert_eq!(positions.0.lock().of.len(), MOST);
        assert_eq!(positions.get(&"c99".parse().unwrap()), None);
        assert!(positions.get(&"c100".parse().unwrap()).is_some());
    }

    #[test]
    fn they_are_written_once_they_have_changed() {
        let folder = tempfile::tempdir().unwrap();
        let store::OpenStore { store, .. } = Store::open(folder.path()).unwrap();
        let positions = Positions::default();
        let container: ContainerId = "c1".parse().unwrap();
        positions.passed(&container, 7);
        positions.keep(&store);
        let kept = store.log_positions().unwrap();
        assert_eq!(kept[&container].timestamp_ms, 7);
        assert_eq!(
            Positions::new(kept).get(&container),
            positions.get(&container)
        );
    }
}
