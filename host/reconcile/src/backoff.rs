//! The delays between retries (docs/spec/device.md#retry).

use std::time::Duration;

use getrandom::u32 as random;
use model::Backoff;

/// The first delay.
const BASE: Duration = Duration::from_millis(500);

/// Returns the delay after `failures` failures in a row: 2^n times half a second, at most `cap`, minus a random part of
/// up to a tenth, so that devices that failed together do not retry together.
pub(crate) fn delay(failures: u32, cap: Duration) -> Duration {
    let whole = Backoff::from_failures(BASE, failures).next_wait(cap);
    // Without random numbers, the retries are just spread less evenly.
    let chance = random().unwrap_or_default();
    whole - whole / 10 * (chance % 1000) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap() {
        let cap = Duration::from_secs(900);
        for (failures, whole) in [
            (1, 1.0),
            (2, 2.0),
            (3, 4.0),
            (10, 512.0),
            (11, 900.0),
            (99, 900.0),
        ] {
            let delay = delay(failures, cap).as_secs_f64();
            assert!(
                delay <= whole && delay >= whole * 0.9,
                "{failures}: {delay}"
            );
        }
    }
}
