//! The schedules of one plugin.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plugin_manifest::Schedule;
use plugin_values::PluginEvent;
use tokio::time::Instant;

use super::pending::PendingEvents;

/// How long it may take to notice a change of the device's clock.
const CLOCK_CHECK: Duration = Duration::from_secs(60);

/// When a schedule is due next.
struct Timer {
    name: String,
    schedule: Schedule,
    due: DueTime,
}

enum DueTime {
    /// After an interval, regardless of the clock.
    At(Instant),
    /// At a clock time, in seconds since the Unix epoch.
    AtTime(u64),
}

/// Adds an event each time a schedule is due; never returns.
pub(super) async fn run(schedules: BTreeMap<String, Schedule>, pending: Arc<PendingEvents>) {
    let (start, time) = (Instant::now(), clock());
    let mut timers: Vec<Timer> = schedules
        .into_iter()
        .map(|(name, schedule)| Timer {
            name,
            schedule,
            due: DueTime::after(schedule, start, time),
        })
        .collect();
    loop {
        let (now, time) = (Instant::now(), clock());
        for timer in &mut timers {
            if timer.is_due(now, time) {
                pending.add(PluginEvent::Schedule(timer.name.clone()));
            }
        }
        let waits = timers.iter().map(|timer| timer.due.wait(now, time));
        let wait = waits.min().unwrap_or(CLOCK_CHECK);
        tokio::time::sleep(wait).await;
    }
}

impl Timer {
    /// Returns whether it is due, and if so, sets the next time.
    fn is_due(&mut self, now: Instant, time: u64) -> bool {
        let next = DueTime::after(self.schedule, now, time);
        let is_due = match (&mut self.due, &next) {
            (DueTime::At(at), _) => *at <= now,
            (DueTime::AtTime(at), DueTime::AtTime(next)) => {
                // The clock may have been set back.
                *at = (*at).min(*next);
                *at <= time
            }
            (DueTime::AtTime(_), DueTime::At(_)) => false,
        };
        if is_due {
            self.due = next;
        }
        is_due
    }
}

impl DueTime {
    fn after(schedule: Schedule, now: Instant, time: u64) -> DueTime {
        let wait = schedule.wait(time);
        match schedule {
            Schedule::Every(_) => DueTime::At(now + wait),
            Schedule::Daily(_) | Schedule::Weekly(_) => DueTime::AtTime(time + wait.as_secs()),
        }
    }

    fn wait(&self, now: Instant, time: u64) -> Duration {
        match self {
            DueTime::At(at) => at.saturating_duration_since(now),
            // Slightly more, so that the second has begun.
            DueTime::AtTime(at) => Duration::from_secs(at.saturating_sub(time))
                .saturating_add(Duration::from_millis(1))
                .min(CLOCK_CHECK),
        }
    }
}

/// Returns the seconds since the Unix epoch.
fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(schedule: &str, now: Instant, time: u64) -> Timer {
        let schedule = schedule.parse().unwrap();
        Timer {
            name: "poll".to_owned(),
            schedule,
            due: DueTime::after(schedule, now, time),
        }
    }

    #[test]
    fn an_interval_is_due_again_and_again_whatever_becomes_of_the_clock() {
        let now = Instant::now();
        let mut timer = timer("every 10s", now, 1000);
        let after = |seconds| now + Duration::from_secs(seconds);
        assert!(!timer.is_due(after(9), 999_999));
        assert!(timer.is_due(after(10), 0));
        assert!(!timer.is_due(after(19), 0));
        // Late, and due only once.
        assert!(timer.is_due(after(45), 0));
        assert!(!timer.is_due(after(54), 0));
    }

    #[test]
    fn a_time_of_day_follows_the_clock() {
        let now = Instant::now();
        let day = 86_400;
        let mut timer = timer("daily 03:00", now, day);
        let three = day + 3 * 3600;
        assert!(!timer.is_due(now, three - 1));
        assert!(timer.is_due(now, three));
        assert!(!timer.is_due(now, three + 1));
        // The clock is set back by a week: the next time is that of the new day.
        assert!(!timer.is_due(now, 2 * 3600));
        assert!(timer.is_due(now, 3 * 3600));
    }

    #[test]
    fn the_clock_is_checked_again_long_before_a_time_of_day() {
        let now = Instant::now();
        let day = 86_400;
        let timer = timer("daily 03:00", now, day);
        let wait = |time: u64| timer.due.wait(now, time);
        assert_eq!(wait(day), CLOCK_CHECK);
        assert_eq!(wait(day + 3 * 3600 - 5), Duration::from_millis(5001));
        assert_eq!(wait(day + 4 * 3600), Duration::from_millis(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_schedule_that_is_due_is_an_event() {
        let kinds = [plugin_manifest::EventKind::Schedule].into();
        let pending = Arc::new(PendingEvents::new(kinds));
        let schedules = BTreeMap::from([("poll".to_owned(), "every 1h".parse().unwrap())]);
        let timing = tokio::spawn(run(schedules, Arc::clone(&pending)));
        let begin = Instant::now();
        for _ in 0..3 {
            let event = pending.next().await;
            assert_eq!(event, PluginEvent::Schedule("poll".to_owned()));
        }
        assert_eq!(begin.elapsed().as_secs() / 3600, 3);
        timing.abort();
    }
}
