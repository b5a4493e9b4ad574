//! Limits on attempts to guess passwords.
//!
//! Each attempt is counted three times: for the account from this network, for the network whatever the account, and
//! for the account from everywhere. The last counter is slow. If the account exists, it is stored in the database
//! ([`accounts::verification`](crate::accounts::verification)), so that replicas share it; names that no user has are
//! counted here in the same way, because a difference would reveal which names exist.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::configuration::Limits;

/// Maximum number of counters. Beyond it, those that would expire first are removed.
const MOST: usize = 100_000;
/// Maximum number of stored characters of a name.
const NAME: usize = 100;
/// The time over which [`Limits::failed_logins_per_account`] are counted.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The network of a caller: one address, or for IPv6 the 64 bits that a provider assigns to one customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(IpAddr);

impl Network {
    pub fn from_address(address: IpAddr) -> Self {
        Network(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        })
    }
}

/// The account whose password is tried.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Account {
    /// An existing user, named by name or e-mail address.
    User(i64),
    /// A name that no user has, in the form that names are stored in.
    Name(String),
    /// No account yet: somebody registers.
    Registration,
}

impl Account {
    /// Returns the account of a name that no user has.
    pub fn named(name: &str) -> Self {
        Account::Name(name.chars().take(NAME).collect())
    }
}

/// What an attempt is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Pair(Account, Network),
    Network(Network),
    Account(Account),
}

/// A number of attempts at once, and one more in each period.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    burst: u32,
    pub(crate) period: Duration,
}

impl Quota {
    fn new(tries: std::num::NonZeroU32, within: Duration) -> Self {
        Quota {
            burst: tries.get(),
            period: within / tries.get(),
        }
    }

    /// Returns how far in the future the time may be at which everything counted is forgotten.
    pub(crate) fn ahead(self) -> Duration {
        self.period * self.burst
    }
}

/// The limits on attempts to guess passwords, and the counted attempts.
pub struct Attempts {
    pair: Quota,
    network: Quota,
    /// The quota of one account from everywhere.
    pub account: Quota,
    /// When each counter is forgotten, if nothing more is counted.
    forgotten: Mutex<HashMap<Key, Instant>>,
}

impl Attempts {
    pub fn new(limits: &Limits) -> Self {
        let minutes = Duration::from_secs(60) * limits.failed_logins_minutes.get();
        Attempts {
            pair: Quota::new(limits.failed_logins, minutes),
            network: Quota::new(limits.failed_logins_per_address, minutes),
            account: Quota::new(limits.failed_logins_per_account, DAY),
            forgotten: Mutex::default(),
        }
    }

    /// Counts an attempt, until [`Attempts::passed`] reports that the password was right. If the user `was_here`
    /// before, others at the same address do not count.
    ///
    /// # Errors
    /// The seconds until the next attempt is accepted.
    pub fn begin(&self, account: &Account, network: Network, was_here: bool) -> Result<(), u64> {
        let now = Instant::now();
        let keys = self.keys(account, network, was_here);
        let mut forgotten = self.forgotten.lock();
        let wait = keys.iter().filter_map(|(key, quota)| {
            let next = forgotten.get(key)?.checked_duration_since(now)? + quota.period;
            next.checked_sub(quota.ahead())
                .filter(|wait| !wait.is_zero())
        });
        if let Some(wait) = wait.max() {
            return Err(whole_seconds(wait));
        }
        make_room(&mut forgotten, now);
        for (key, quota) in keys {
            let at = forgotten.entry(key).or_insert(now);
            *at = (*at).max(now) + quota.period;
        }
        Ok(())
    }

    /// Reports that the password was right, and forgets what was counted for this account from here.
    pub fn passed(&self, account: &Account, network: Network, was_here: bool) {
        let mut forgotten = self.forgotten.lock();
        for (key, quota) in self.keys(account, network, was_here) {
            if matches!(key, Key::Pair(..)) {
                forgotten.remove(&key);
            } else if let Some(at) = forgotten.get_mut(&key) {
                *at = at.checked_sub(quota.period).unwrap_or(*at);
            }
        }
    }

    /// Removes the counters of callers that made no attempt for a while.
    pub(super) fn tidy(&self) {
        let now = Instant::now();
        let mut forgotten = self.forgotten.lock();
        forgotten.retain(|_, at| *at > now);
        forgotten.shrink_to_fit();
    }

    fn keys(&self, account: &Account, network: Network, was_here: bool) -> Vec<(Key, Quota)> {
        let mut keys = vec![(Key::Pair(account.clone(), network), self.pair)];
        if *account != Account::Registration && !was_here {
            keys.push((Key::Network(network), self.network));
        }
        if matches!(account, Account::Name(_)) {
            keys.push((Key::Account(account.clone()), self.account));
        }
        keys
    }
}

/// Makes room for another counter if there are as many as allowed.
fn make_room(forgotten: &mut HashMap<Key, Instant>, now: Instant) {
    if forgotten.len() < MOST {
        return;
    }
    forgotten.retain(|_, at| *at > now);
    if forgotten.len() < MOST {
        return;
    }
    let mut times: Vec<Instant> = forgotten.values().copied().collect();
    let middle = times.len() / 2;
    let (_, middle, _) = times.select_nth_unstable(middle);
    let middle = *middle;
    forgotten.retain(|_, at| *at > middle);
}

/// Returns whole seconds for `Retry-After`: at least one.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn at(last: u8) -> Network {
        Network::from_address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)))
    }

    #[test]
    fn an_account_is_refused_from_one_network_and_a_successful_try_resets_its_count() {
        let attempts = Attempts::new(&Limits::default());
        let ann = Account::User(1);
        for _ in 0..9 {
            assert_eq!(attempts.begin(&ann, at(1), false), Ok(()));
        }
        attempts.passed(&ann, at(1), false);
        for _ in 0..10 {
            assert_eq!(attempts.begin(&ann, at(1), false), Ok(()));
        }
        let wait = attempts.begin(&ann, at(1), false).expect_err("refused");
        assert!((1..=360).contains(&wait), "{wait}");
        assert_eq!(attempts.begin(&Account::User(2), at(1), false), Ok(()));
        assert_eq!(attempts.begin(&ann, at(2), false), Ok(()), "from elsewhere");
    }

    #[test]
    fn a_network_is_refused_whatever_names_it_tries_and_right_tries_are_not_counted() {
        let attempts = Attempts::new(&Limits::default());
        for number in 0..1000 {
            let user = Account::User(number);
            assert_eq!(attempts.begin(&user, at(1), false), Ok(()));
            attempts.passed(&user, at(1), false);
        }
        for number in 0..100 {
            let made_up = Account::named(&format!("nobody{number}"));
            assert_eq!(attempts.begin(&made_up, at(1), false), Ok(()), "{number}");
        }
        let wait = attempts
            .begin(&Account::named("one_more"), at(1), false)
            .expect_err("refused");
        assert!((1..=36).contains(&wait), "{wait}");
        assert_eq!(
            attempts.begin(&Account::named("one_more"), at(2), false),
            Ok(())
        );
    }

    #[test]
    fn a_name_that_nobody_has_is_refused_from_everywhere_as_one_that_somebody_has() {
        let attempts = Attempts::new(&Limits::default());
        let name = Account::named("nobody");
        for number in 0..100 {
            assert_eq!(attempts.begin(&name, at(number), false), Ok(()));
        }
        let wait = attempts.begin(&name, at(200), false).expect_err("refused");
        assert!((1..=864).contains(&wait), "{wait}");
    }

    #[test]
    fn a_network_of_ipv6_is_what_one_customer_has() {
        let network = |text: &str| Network::from_address(text.parse().expect("an address"));
        assert_eq!(network("2001:db8:1:2:3::4"), network("2001:db8:1:2::5"));
        assert_ne!(network("2001:db8:1:2::4"), network("2001:db8:1:3::4"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }

    #[test]
    fn counters_are_bounded() {
        let attempts = Attempts::new(&Limits::default());
        for number in 0..u32::try_from(MOST).expect("a number") {
            let network = Network::from_address(IpAddr::V4(Ipv4Addr::from_bits(number)));
            let _ = attempts.begin(&Account::named(&number.to_string()), network, false);
        }
        assert!(attempts.forgotten.lock().len() <= MOST + 3);
    }
}
