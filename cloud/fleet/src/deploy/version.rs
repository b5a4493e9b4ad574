//! Versions that people give to releases.

use crate::failure::{Failure, Result};

/// Returns a version as the cloud accepts it.
///
/// # Errors
/// If it is not a semantic version.
pub(crate) fn checked(text: &str) -> Result<String> {
    let plain = text.strip_prefix('v').unwrap_or(text);
    match semver::Version::parse(plain) {
        Ok(_) => Ok(plain.to_owned()),
        Err(error) => Err(
            Failure::usage(format!("`{text}` is not a version of a release"))
                .because(error)
                .hint("it is a semantic version such as 1.2.3 or 1.2.3-beta"),
        ),
    }
}
