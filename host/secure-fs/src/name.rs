//! Names of entries of a folder: the check of those that callers give, and new ones.

use std::io;

/// Checks that this is a single name that leads nowhere else.
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    match name {
        "" | "." | ".." => Err(io::ErrorKind::InvalidInput.into()),
        name if name.contains(['/', '\0']) => Err(io::ErrorKind::InvalidInput.into()),
        _ => Ok(()),
    }
}

/// Returns 32 hexadecimal digits that nobody can guess.
///
/// # Errors
/// If the system has no random numbers.
pub fn random_hex() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(hex::encode(bytes))
}
