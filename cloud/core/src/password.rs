//! Hashes of passwords, each with a salt of its own (argon2id). They take their time by design, and so off
//! the threads that serve requests, a few at a time: each takes 19 MiB while it runs.
//!
//! Whoever waits for a hash has a place in a line, which is short: beyond it, and beyond a share of it for each
//! network, the next one is refused at once rather than served late.

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
/// Passwords that are tried first by whoever guesses; those that are too short anyway are left out.
const WELL_KNOWN: &str = "\
    00000000 11111111 12121212 123123123 1234567890 12345678 123456789 1q2w3e4r 1qaz2wsx \
    87654321 abcd1234 abcdefgh admin123 administrator baseball changeme computer football \
    iloveyou letmein1 password password1 password123 princess q1w2e3r4 qwerty123 qwertyuiop \
    starwars superman trustno1 welcome1 whatever";

/// What is wrong with a password that somebody chose.
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

/// Hashes at a time.
static TURNS: Semaphore = Semaphore::const_new(2);
/// Places in the line.
const PLACES: usize = 64;
/// Places in the line for one network.
const PLACES_OF_ONE: usize = 16;
/// When it is worth another try, in seconds: the line is over in one or two.
const FULL: u64 = 2;

/// The line of those who wait for a hash.
pub struct HashQueue {
    places: ConcurrencyLimit<Network>,
}

/// A place in the line, until it is dropped.
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
    /// A place in the line.
    ///
    /// # Errors
    /// In how many seconds it is worth another try, where the line is full.
    pub fn enter(&self, network: Network) -> Result<QueuePlace, u64> {
        let permit = self.places.enter(&network, 1).ok_or(FULL)?;
        Ok(QueuePlace { _permit: permit })
    }
}

impl QueuePlace {
    /// As [`hash`].
    ///
    /// # Errors
    /// As [`hash`].
    pub async fn hash(&self, password: String) -> Result<String> {
        hash(password).await
    }

    /// Whether a password is the one of a hash. Without a hash it takes as long, and it is not: nobody learns by
    /// the time whether a user exists.
    ///
    /// # Errors
    /// Where the work was stopped.
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

/// The hash of a password, with its salt and how it was made.
///
/// # Errors
/// Where the system has no random numbers.
pub async fn hash(password: String) -> Result<String> {
    let turn = TURNS.acquire().await?;
    let hash = spawn_blocking(move || {
        // As long as the work, whoever waits for it.
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
    async fn only_the_password_itself_is_taken() {
        let network = Network::of(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let Ok(place) = HashQueue::default().enter(network) else {
            panic!("a place");
        };
        let made = hash("correct horse".to_owned()).await.expect("a hash");
        assert!(made.starts_with("$argon2id$"), "{made}");
        for (given, hash, taken) in [
            ("correct horse", Some(made.clone()), true),
            ("correct horse ", Some(made.clone()), false),
            ("", Some(made), false),
            ("correct horse", Some("no hash".to_owned()), false),
            ("correct horse", None, false),
        ] {
            let answer = place.is(given.to_owned(), hash).await.expect("an answer");
            assert_eq!(answer, taken, "{given}");
        }
    }

    #[test]
    fn the_line_is_short_and_no_network_has_all_of_it() {
        let line = HashQueue::default();
        let at = |last| Network::of(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
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
