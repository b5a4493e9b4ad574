//! Limits on simultaneous use, for each key and in total.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// A limit on the amount that one key may hold at a time, and on the amount of all keys together.
pub struct ConcurrencyLimit<K> {
    each: usize,
    all: usize,
    occupancy: Arc<Mutex<Occupancy<K>>>,
}

struct Occupancy<K> {
    by: HashMap<K, usize>,
    all: usize,
}

/// The amount held by one key; dropping it releases the amount.
pub struct Permit<K: Eq + Hash> {
    key: K,
    amount: usize,
    occupancy: Arc<Mutex<Occupancy<K>>>,
}

impl<K: Eq + Hash + Clone> ConcurrencyLimit<K> {
    /// `each` for one key, `all` for all of them.
    pub fn new((each, all): (usize, usize)) -> Self {
        ConcurrencyLimit {
            each,
            all,
            occupancy: Arc::new(Mutex::new(Occupancy {
                by: HashMap::new(),
                all: 0,
            })),
        }
    }

    /// Adds an amount to a key's use, unless that exceeds its limit or the total limit.
    pub fn enter(&self, key: &K, amount: usize) -> Option<Permit<K>> {
        let mut occupancy = self.occupancy.lock();
        let of_it = occupancy.by.get(key).copied().unwrap_or_default();
        if of_it.saturating_add(amount) > self.each
            || occupancy.all.saturating_add(amount) > self.all
        {
            return None;
        }
        occupancy.by.insert(key.clone(), of_it + amount);
        occupancy.all += amount;
        Some(Permit {
            key: key.clone(),
            amount,
            occupancy: self.occupancy.clone(),
        })
    }
}

#[cfg(test)]
impl<K> ConcurrencyLimit<K> {
    /// Whether nobody holds anything.
    pub(crate) fn is_free(&self) -> bool {
        self.occupancy.lock().by.is_empty()
    }
}

impl<K: Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut occupancy = self.occupancy.lock();
        occupancy.all = occupancy.all.saturating_sub(self.amount);
        if let Some(of_it) = occupancy.by.get_mut(&self.key) {
            *of_it = of_it.saturating_sub(self.amount);
            if *of_it == 0 {
                occupancy.by.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_its_share_and_all_have_theirs_until_it_is_given_back() {
        let limit = ConcurrencyLimit::new((2, 3));
        let first = limit.enter(&"a", 1).expect("one");
        let _second = limit.enter(&"a", 1).expect("another");
        assert!(limit.enter(&"a", 1).is_none(), "more than its share");
        let _third = limit.enter(&"b", 1).expect("somebody else");
        assert!(limit.enter(&"b", 1).is_none(), "more than all may have");
        drop(first);
        assert!(limit.enter(&"b", 1).is_some());
        assert!(limit.enter(&"c", 2).is_none(), "two, where one is left");
        assert!(limit.enter(&"c", usize::MAX).is_none());
    }
}
