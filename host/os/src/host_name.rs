//! Which texts are valid host names.

use crate::OsError;

/// The kernel's limit, in bytes.
const LONGEST: usize = 64;

/// Checks that every part of the system accepts the name as a static host name. Stricter rules are
/// up to the caller.
///
/// # Errors
/// [`OsError::InvalidHostName`].
pub fn check(name: &str) -> Result<(), OsError> {
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    if name.len() <= LONGEST && name.split('.').all(is_label) {
        Ok(())
    } else {
        Err(OsError::InvalidHostName(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_host_names_are_accepted() {
        for name in ["a", "device-1", "gate.shop.example", "4E1", &"a".repeat(64)] {
            check(name).unwrap();
        }
        for name in [
            "",
            "-a",
            "a-",
            "a..b",
            "a.",
            ".a",
            "a b",
            "a\nb",
            "a_b",
            "ä",
            "a/b",
            &"a".repeat(65),
        ] {
            check(name).unwrap_err();
        }
    }
}
