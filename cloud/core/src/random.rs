//! Random numbers of the system, for keys, secrets and names.

use anyhow::{Context as _, Result};

/// Returns this many random bytes, as hexadecimal digits.
pub fn random_text(bytes: usize) -> Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).context("the system has no random numbers")?;
    Ok(hex::encode(random))
}
