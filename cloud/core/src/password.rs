//! Hashes of passwords, each with its own salt (argon2id). They are slow by design, so they are computed outside the
//! threads that serve requests, a few at a time: each needs 19 MiB while it runs.
//!
//! Callers wait for a hash in a queue, which is short: when it is full, or a network has used up its share of it,
//! further callers are refused at once instead of being served late.

use anyhow::{Context as _, Result, anyhow};
use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::concurrency::{ConcurrencyLimit, Permit};
use crate::limits::Network;

/// Characters of a password.
const LENGTH: std::ops::RangeInclusive<usize> = 8..=1000;
/// Passwords that attackers try first, except those that are too short anyway.
const WELL_KNOWN: &str = "\
    00000000 11111111 12121212 123123123 1234567890 12345678 123456789 1q2w3e4r 1qaz2wsx \
    87654321 abcd1234 abcdefgh admin123 administrator baseball changeme computer football \
    iloveyou letmein1 password password1 password123 princess q1w2e3r4 qwerty123 qwertyuiop \
    starwars superman trustno1 welcome1 whatever";

/// Returns what is wrong with a password chosen by a person.
pub fn fault(password: &str) -> Option<String> {
    if !LENGTH.contains(&password.chars().count()) {
        return Some(format!(
            "a password has {} to {} characters",
            LENGTH.start(),
            LENGTH.end()
        ));
    }
    let lower = password.to_lowercase();
    let alike = password.chars().all(|one| password.starts_with(one));
    (alike || WELL_KNOWN.split(' ').any(|known| known == lower))
        .then(|| "this password is one of those that are guessed first; choose another".to_owned())
}

/// Hashes computed at the same time.
static TURNS: Semaphore = Semaphore::const_new(2);
/// Places in the queue.
const PLACES: usize = 64;
/// Places in the queue for one network.
const PLACES_OF_ONE: usize = 16;
/// When to retry if the queue is full, in seconds: it empties within one or two.
const FULL: u64 = 2;

/// The queue for password hashes.
pub struct HashQueue {
    places: ConcurrencyLimit<Network>,
}

/// A place in the queue, until it is dropped.
pub struct QueuePlace {
    _permit: Permit<Network>,
}

impl Default for HashQueue {
    fn default() -> Self {
        HashQueue {
            places: ConcurrencyLimit::new((PLACES_OF_ONE, PLACES)),
        }
    }
}

impl HashQueue {
    /// Reserves a place in the queue.
    ///
    /// # Errors
    /// If the queue is full: in how many seconds to retry.
    pub fn enter(&self, network: Network) -> Result<QueuePlace, u64> {
        let permit = self.places.enter(&network, 1).ok_or(FULL)?;
        Ok(QueuePlace { _permit: permit })
    }
}

impl QueuePlace {
    /// As for [`hash`].
    ///
    /// # Errors
    /// As for [`hash`].
    pub async fn hash(&self, password: String) -> Result<String> {
        hash(password).await
    }

    /// Whether a password matches a hash. Without a hash, the answer is no and takes just as long, so that the time
    /// does not reveal whether a user exists.
    ///
    /// # Errors
    /// If the work was stopped.
    pub async fn is(&self, password: String, hash: Option<String>) -> Result<bool> {
        let turn = TURNS.acquire().await?;
        spawn_blocking(move || {
            let _turn = turn;
            match hash.as_deref().map(PasswordHash::new) {
                Some(Ok(hash)) => Argon2::default()
                    .verify_password(password.as_bytes(), &hash)
                    .is_ok(),
                _ => {
                    let _ = Argon2::default().hash_password(password.as_bytes());
                    false
                }
            }
        })
        .await
        .context("checking a password stopped")
    }
}

/// Returns the hash of a password, with its salt and parameters.
///
/// # Errors
/// If the system has no random numbers.
pub async fn hash(password: String) -> Result<String> {
    let turn = TURNS.acquire().await?;
    let hash = spawn_blocking(move || {
        // Held until the work ends, even if the caller no longer waits.
        let _turn = turn;
        Argon2::default()
            .hash_password(password.as_bytes())
            .map(|hash| hash.to_string())
    });
    hash.await
        .context("hashing a password stopped")?
        .map_err(|error| anyhow!("a password cannot be hashed: {error}"))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[tokio::test]
    async fn only_the_exact_password_is_accepted() {
        let network = Network::from_address(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let Ok(place) = HashQueue::default().enter(network) else {
            panic!("a place");
        };
        let made = hash("correct horse".to_owned()).await.expect("a hash");
        assert!(made.starts_with("$argon2id$"), "{made}");
        for (given, hash, expected) in [
            ("correct horse", Some(made.clone()), true),
            ("correct horse ", Some(made.clone()), false),
            ("", Some(made), false),
            ("correct horse", Some("no hash".to_owned()), false),
            ("correct horse", None, false),
        ] {
            let answer = place.is(given.to_owned(), hash).await.expect("an answer");
            assert_eq!(answer, expected, "{given}");
        }
    }

    #[test]
    fn the_line_is_short_and_no_network_has_all_of_it() {
        let line = HashQueue::default();
        let at = |last| Network::from_address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
        let mut held = Vec::new();
        for _ in 0..PLACES_OF_ONE {
            held.push(line.enter(at(1)).unwrap_or_else(|_| panic!("a place")));
        }
        assert!(line.enter(at(1)).is_err(), "its share is taken");
        for number in 0..PLACES - PLACES_OF_ONE {
            let other = at(2 + u8::try_from(number).expect("a number"));
            held.push(line.enter(other).unwrap_or_else(|_| panic!("a place")));
        }
        assert!(line.enter(at(200)).is_err(), "the line is full");
        held.clear();
        assert!(line.places.is_free());
    }
}
