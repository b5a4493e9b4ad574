//! Waiting for a condition that nothing announces, with a deadline.

use std::future::Future;
use std::time::{Duration, Instant};

/// Longer than anything here takes unless it hangs, also on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Asks `look` until it answers something.
///
/// # Panics
/// Where it still answers nothing at the [`DEADLINE`]; the message says `what` was waited for and what
/// the last look saw.
pub async fn until<T, E, F, Look>(what: &str, look: Look) -> T
where
    Look: FnMut() -> F,
    F: Future<Output = Result<T, E>>,
    E: std::fmt::Debug,
{
    until_within(DEADLINE, what, look).await
}

/// As [`until`], for what takes longer on a busy machine.
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
