//! Reports secrets of the database that no key decrypts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use data::UnreadableSecret;
use parking_lot::Mutex;

/// How long a value is not reported again.
const AGAIN: Duration = Duration::from_secs(60);
/// Maximum number of values reported in that time.
const MOST: usize = 100;

/// Logs which value cannot be read; once a minute for each value, however often it is requested.
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
