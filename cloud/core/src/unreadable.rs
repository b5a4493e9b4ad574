//! Reports secrets of the database that no key decrypts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use data::UnreadableSecret;
use parking_lot::Mutex;

/// How long a value is not reported again.
const AGAIN: Duration = Duration::from_secs(60);
/// Values that are reported in that time.
const MOST: usize = 100;

/// Says in the log which value cannot be read; of each value once a minute, however many ask for it.
pub(crate) fn log(why: &UnreadableSecret) {
    static REPORTED: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());
    let why = why.to_string();
    let mut reported = REPORTED.lock();
    reported.retain(|_, since| since.elapsed() < AGAIN);
    if reported.len() < MOST && !reported.contains_key(&why) {
        tracing::error!("a secret cannot be decrypted: {why}");
        reported.insert(why, Instant::now());
    }
}
