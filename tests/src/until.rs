//! Waiting, with a deadline, for a condition that is not signalled.

use std::future::Future;
use std::time::{Duration, Instant};

/// Longer than anything here takes unless it hangs, even on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(240);
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Calls `look` until it succeeds.
///
/// # Panics
/// If it still fails at the [`DEADLINE`]; the message contains `what` and the last error.
pub async fn until<T, E, F, Look>(what: &str, look: Look) -> T
where
    Look: FnMut() -> F,
    F: Future<Output = Result<T, E>>,
    E: std::fmt::Debug,
{
    until_within(DEADLINE, what, look).await
}

/// As [`until`], for conditions that take longer on a busy machine.
///
/// # Panics
/// As [`until`], after `patience`.
pub async fn until_within<T, E, F, Look>(patience: Duration, what: &str, mut look: Look) -> T
where
    Look: FnMut() -> F,
    F: Future<Output = Result<T, E>>,
    E: std::fmt::Debug,
{
    let deadline = Instant::now() + patience;
    loop {
        let seen = match look().await {
            Ok(found) => return found,
            Err(seen) => seen,
        };
        assert!(
            Instant::now() < deadline,
            "waited {patience:?} for {what}; last seen: {seen:?}"
        );
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
