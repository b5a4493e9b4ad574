//! The schedules on which a plugin is called.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The shortest interval. For shorter ones, use a service.
pub const SHORTEST_INTERVAL: Duration = Duration::from_secs(10);
/// The longest interval.
pub const LONGEST_INTERVAL: Duration = Duration::from_secs(31 * DAY);

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
/// The Unix epoch was a Thursday; weeks here begin on Monday.
const FROM_MONDAY_TO_EPOCH: u64 = 3 * DAY;
const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Times at which a plugin is called. Times of day are UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// Repeatedly at this interval, counted from the start.
    Every(Duration),
    /// At this second of each day.
    Daily(u64),
    /// At this second of each week, which begins on Monday.
    Weekly(u64),
}

impl Schedule {
    /// Returns the time until the schedule is due, counted from a time in seconds since the Unix epoch. If it is due
    /// at that time, the next time counts.
    #[must_use]
    pub fn wait(self, now: u64) -> Duration {
        let (period, second, elapsed) = match self {
            Schedule::Every(interval) => return interval,
            Schedule::Daily(second) => (DAY, second, now % DAY),
            Schedule::Weekly(second) => {
                (WEEK, second, now.wrapping_add(FROM_MONDAY_TO_EPOCH) % WEEK)
            }
        };
        let wait = if second > elapsed {
            second - elapsed
        } else {
            period - elapsed + second
        };
        Duration::from_secs(wait)
    }
}

/// The reason why a text is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a schedule: write `every 30s` (s, m, h or d, from 10 s to 31 days), `daily 03:30` or `weekly monday 03:30`, in UTC"
)]
pub struct ScheduleError(String);

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let schedule = match words.as_slice() {
            ["every", interval] => parse_interval(interval).map(Schedule::Every),
            ["daily", time] => second_of_day(time).map(Schedule::Daily),
            ["weekly", day, time] => second_of_day(time).and_then(|second| {
                let mut days = (0..).zip(WEEKDAYS);
                let (index, _) = days.find(|(_, name)| name == day)?;
                let day: u64 = index;
                Some(Schedule::Weekly(day * DAY + second))
            }),
            _ => None,
        };
        let shown = || text.chars().take(100).collect();
        schedule.ok_or_else(|| ScheduleError(shown()))
    }
}

fn parse_interval(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => MINUTE,
        'h' => HOUR,
        'd' => DAY,
        _ => return None,
    };
    let number = whole_number(text.strip_suffix(unit)?)?;
    let interval = Duration::from_secs(number.checked_mul(seconds)?);
    (SHORTEST_INTERVAL..=LONGEST_INTERVAL)
        .contains(&interval)
        .then_some(interval)
}

fn second_of_day(text: &str) -> Option<u64> {
    let (hour, minute) = text.split_once(':')?;
    if hour.len() != 2 || minute.len() != 2 {
        return None;
    }
    let (hour, minute) = (whole_number(hour)?, whole_number(minute)?);
    (hour < 24 && minute < 60).then_some(hour * HOUR + minute * MINUTE)
}

/// Reads digits only, without a sign.
fn whole_number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = |second: u64| format!("{:02}:{:02}", second / HOUR, second % HOUR / MINUTE);
        match *self {
            Schedule::Every(interval) => write!(f, "every {}s", interval.as_secs()),
            Schedule::Daily(second) => write!(f, "daily {}", clock(second)),
            Schedule::Weekly(second) => {
                let day = usize::try_from(second / DAY).unwrap_or_default();
                let day = WEEKDAYS.get(day).copied().unwrap_or_default();
                write!(f, "weekly {day} {}", clock(second % DAY))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Schedule {
        text.parse().unwrap()
    }

    #[test]
    fn a_schedule_is_an_interval_or_a_time_of_day_or_week() {
        for (text, expected) in [
            ("every 10s", Schedule::Every(Duration::from_secs(10))),
            ("every  5m", Schedule::Every(Duration::from_secs(300))),
            ("every 31d", Schedule::Every(LONGEST_INTERVAL)),
            ("daily 03:30", Schedule::Daily(12_600)),
            ("weekly monday 00:00", Schedule::Weekly(0)),
            ("weekly sunday 23:59", Schedule::Weekly(WEEK - 60)),
        ] {
            assert_eq!(parse(text), expected, "{text}");
            assert_eq!(parse(&parse(text).to_string()), expected, "{text}");
        }
    }

    #[test]
    fn an_invalid_schedule_is_refused_with_the_valid_forms() {
        for text in [
            "",
            "every",
            "every 9s",
            "every 32d",
            "every 5",
            "every -5m",
            "every 5µ",
            "every 99999999999999999999d",
            "daily 24:00",
            "daily 3:30",
            "daily 03:60",
            "daily +3:30",
            "weekly mon 03:30",
            "weekly 03:30",
            "hourly",
        ] {
            let error = text.parse::<Schedule>().unwrap_err().to_string();
            assert!(error.contains("write `every 30s`"), "{text}: {error}");
        }
    }

    #[test]
    fn a_time_of_day_is_waited_for_and_due_once() {
        // 2026-11-26, a Thursday, at 03:29:30 UTC.
        let now = 1_795_663_770;
        let seconds = |text: &str, now| parse(text).wait(now).as_secs();
        assert_eq!(seconds("daily 03:30", now), 30);
        assert_eq!(seconds("daily 03:30", now + 30), DAY);
        assert_eq!(seconds("daily 03:29", now), DAY - 30);
        assert_eq!(seconds("weekly thursday 03:30", now), 30);
        assert_eq!(seconds("weekly friday 03:30", now), DAY + 30);
        assert_eq!(seconds("weekly wednesday 03:30", now), 6 * DAY + 30);
        assert_eq!(seconds("every 5m", now), 300);
    }
}
