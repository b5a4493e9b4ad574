//! How long an app has waited for an update lock that a user holds, and when this is reported.
//!
//! Any process of a service can hold its update lock forever, as can any user of the host: the lock folders are open to
//! all, as services expect them to be. So this is not prevented, but an update that waits for long is reported.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{AppUuid, MAX_LOCK_TTL};
use tokio::time::Instant;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The longest duration of a lock over the API: a file that is held for longer may have been forgotten.
const LONG: Duration = MAX_LOCK_TTL;
/// Attempts of one update are less than this apart; an attempt after a longer pause belongs to another update.
const SAME_UPDATE: Duration = Duration::from_secs(3600);

/// The apps whose updates wait.
#[derive(Debug, Default)]
pub(super) struct LockWaits(BTreeMap<AppUuid, LockWait>);

#[derive(Debug, Clone, Copy)]
struct LockWait {
    since: Instant,
    latest: Instant,
    /// The waiting time at the last report.
    reported_at: Option<Duration>,
}

impl LockWaits {
    /// Records that the update of `app` was blocked by a lock once more. Returns the number of days it has waited, if a
    /// report is due now: after a week, and each day from then on.
    pub(super) fn refused(&mut self, app: &AppUuid, now: Instant) -> Option<u64> {
        let begins = LockWait {
            since: now,
            latest: now,
            reported_at: None,
        };
        let wait = self.0.entry(app.clone()).or_insert(begins);
        if now.duration_since(wait.latest) > SAME_UPDATE {
            *wait = begins;
        }
        wait.latest = now;
        let waited = now.duration_since(wait.since);
        let due = wait
            .reported_at
            .map_or(LONG, |reported_at| reported_at + DAY);
        if waited < due {
            return None;
        }
        wait.reported_at = Some(waited);
        Some(waited.as_secs() / DAY.as_secs())
    }

    /// Records that its locks were taken.
    pub(super) fn acquired(&mut self, app: &AppUuid) {
        self.0.remove(app);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_reported_after_a_week_and_then_each_day() {
        let app: AppUuid = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let other: AppUuid = "fedcba9876543210fedcba9876543210".parse().unwrap();
        let begin = Instant::now();
        let mut waits = LockWaits::default();
        let mut reports = Vec::new();
        // Every quarter of an hour, for nine days and a half.
        for quarter in 0..(9 * 24 + 12) * 4 {
            let now = begin + Duration::from_secs(900) * quarter;
            reports.extend(waits.refused(&app, now));
            if quarter % 100 == 0 {
                // Each of these comes after a pause, so this update never waits for long.
                assert_eq!(waits.refused(&other, now), None);
            }
        }
        assert_eq!(reports, [7, 8, 9]);
        let end = begin + 10 * DAY;
        waits.acquired(&app);
        assert_eq!(waits.refused(&app, end), None);
    }
}
