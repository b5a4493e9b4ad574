//! The durations of requests, in buckets: an addition to two atomics per request.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::exposition::Family;

/// Upper limits of the buckets, in nanoseconds, and in seconds as Prometheus writes them.
const BUCKETS: [(u64, &str); 14] = [
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (1_000_000_000, "1"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
];

/// The durations of one kind of request.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// Each bucket separately; the last one contains the rest.
    counts: [AtomicU64; BUCKETS.len() + 1],
    /// In nanoseconds.
    sum: AtomicU64,
}

impl Histogram {
    pub(super) fn add(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // Most requests are in the first few.
        let bucket = BUCKETS.iter().position(|(end, _)| nanoseconds <= *end);
        if let Some(count) = self.counts.get(bucket.unwrap_or(BUCKETS.len())) {
            count.fetch_add(1, Relaxed);
        }
        self.sum.fetch_add(nanoseconds, Relaxed);
    }

    pub(super) fn put(&self, family: &mut Family<'_>, labels: &[(&str, &str)]) {
        let mut all = 0;
        let mut with_end: Vec<(&str, &str)> = labels.to_vec();
        with_end.push(("le", ""));
        let ends = BUCKETS.iter().map(|(_, end)| *end).chain(["+Inf"]);
        for (count, end) in self.counts.iter().zip(ends) {
            all += count.load(Relaxed);
            if let Some((_, value)) = with_end.last_mut() {
                *value = end;
            }
            family.sample("_bucket", &with_end, format_args!("{all}"));
        }
        let sum = Duration::from_nanos(self.sum.load(Relaxed)).as_secs_f64();
        family.sample("_sum", labels, format_args!("{sum}"));
        family.sample("_count", labels, format_args!("{all}"));
    }
}
