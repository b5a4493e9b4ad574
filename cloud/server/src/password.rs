//! Hashes of passwords, each with a salt of its own (argon2id). They take their time by design, and so off
//! the threads that serve requests, a few at a time: each takes 19 MiB while it runs.

use anyhow::{Context as _, Result, anyhow};
use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Hashes at a time.
static TURNS: Semaphore = Semaphore::const_new(2);

/// The hash of a password, with its salt and how it was made.
///
/// # Errors
/// Where the system has no random numbers.
pub(crate) async fn hash(password: String) -> Result<String> {
    let _turn = TURNS.acquire().await?;
    let hash = spawn_blocking(move || {
        Argon2::default()
            .hash_password(password.as_bytes())
            .map(|hash| hash.to_string())
    });
    hash.await
        .context("hashing a password stopped")?
        .map_err(|error| anyhow!("a password cannot be hashed: {error}"))
}

/// Whether a password is the one of a hash. Without a hash it takes as long, and it is not: nobody learns by
/// the time whether a user exists.
///
/// # Errors
/// Where the work was stopped.
pub(crate) async fn is(password: String, hash: Option<String>) -> Result<bool> {
    let _turn = TURNS.acquire().await?;
    spawn_blocking(move || match hash.as_deref().map(PasswordHash::new) {
        Some(Ok(hash)) => Argon2::default()
            .verify_password(password.as_bytes(), &hash)
            .is_ok(),
        _ => {
            let _ = Argon2::default().hash_password(password.as_bytes());
            false
        }
    })
    .await
    .context("checking a password stopped")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_password_itself_is_taken() {
        let made = hash("correct horse".to_owned()).await.expect("a hash");
        assert!(made.starts_with("$argon2id$"), "{made}");
        for (given, hash, taken) in [
            ("correct horse", Some(made.clone()), true),
            ("correct horse ", Some(made.clone()), false),
            ("", Some(made), false),
            ("correct horse", Some("no hash".to_owned()), false),
            ("correct horse", None, false),
        ] {
            let answer = is(given.to_owned(), hash).await.expect("an answer");
            assert_eq!(answer, taken, "{given}");
        }
    }
}
