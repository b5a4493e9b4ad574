//! When a request is repeated (docs/spec/device.md#poll).

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use model::Backoff;

/// The wait after the first failure of a request at the poll interval.
pub(crate) const BASE: Duration = Duration::from_secs(15);
/// The longest random time that is added to the poll interval.
const JITTER: Duration = Duration::from_secs(60);
/// The longest time for which a cloud can hold off a device.
const LONGEST_HOLD: Duration = Duration::from_secs(24 * 3600);

/// Returns the wait after one more failure: at most `longest`, or the time that the cloud asked for, if that is longer.
pub(crate) fn after_failure(
    backoff: &mut Backoff,
    longest: Duration,
    retry_after: Option<Duration>,
) -> Duration {
    let own = backoff.next_wait(longest);
    own.max(retry_after.unwrap_or_default())
}

/// Returns the poll interval plus a random time of up to a minute, drawn again each time, so that devices started
/// together do not poll together. An interval of less than a minute is at most doubled.
pub(crate) fn after_success(interval: Duration) -> Duration {
    // Without random numbers the waits are only less evenly spread.
    let chance = getrandom::u32().unwrap_or_default();
    let share = f64::from(chance) / f64::from(u32::MAX);
    interval + JITTER.min(interval).mul_f64(share)
}

/// Reads `Retry-After` as seconds or as a date; `None` if it is neither. A date is compared with the cloud's own, since
/// a device's clock may be years off.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let hold = if value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() {
        Duration::from_secs(value.parse().unwrap_or(u64::MAX))
    } else {
        let until = httpdate::parse_http_date(value).ok()?;
        let now = headers
            .get(DATE)
            .and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        let now = now.unwrap_or_else(SystemTime::now);
        until.duration_since(now).unwrap_or_default()
    };
    Some(hold.min(LONGEST_HOLD))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn waits_double_up_to_the_interval_and_give_way_to_what_the_cloud_asks() {
        let interval = 15 * MINUTE;
        for (errors, retry_after, seconds) in [
            (0, None, 15),
            (1, None, 30),
            (2, None, 60),
            (5, None, 480),
            (6, None, 900),
            (99, None, 900),
            (0, Some(5), 15),
            (0, Some(20), 20),
            (99, Some(7200), 7200),
        ] {
            let mut backoff = Backoff::from_failures(BASE, errors);
            let retry_after = retry_after.map(Duration::from_secs);
            let wait = after_failure(&mut backoff, interval, retry_after);
            assert_eq!(wait.as_secs(), seconds, "{errors} {retry_after:?}");
        }
        let second = Duration::from_secs(1);
        let wait = after_failure(&mut Backoff::new(BASE), second, None);
        assert_eq!(wait, second);
    }

    #[test]
    fn the_period_is_never_shorter_than_the_interval_nor_a_minute_longer() {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let period = after_success(15 * MINUTE);
            assert!((15 * MINUTE..=16 * MINUTE).contains(&period), "{period:?}");
            seen.insert(period);
        }
        assert!(seen.len() > 1, "it is drawn each time");
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        let hold = |value: &str, date: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            retry_after(&headers).map(|hold| hold.as_secs())
        };
        let noon = Some("Sun, 06 Nov 1994 12:00:00 GMT");
        for (value, date, seconds) in [
            ("120", None, Some(120)),
            (" 7 ", None, Some(7)),
            ("0", None, Some(0)),
            ("99999999999999999999999", None, Some(86400)),
            ("Sun, 06 Nov 1994 12:01:30 GMT", noon, Some(90)),
            ("Sun, 06 Nov 1994 11:59:00 GMT", noon, Some(0)),
            ("Sun, 06 Nov 1994 12:00:00 GMT", None, Some(0)),
            ("Wed, 06 Nov 2999 12:00:00 GMT", noon, Some(86400)),
            ("-5", None, None),
            ("1.5", None, None),
            ("soon", None, None),
            ("", None, None),
        ] {
            assert_eq!(hold(value, date), seconds, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
