//! Errors as text.

use std::error::Error;

/// Returns an error with its causes, separated by `: `, on one line unless one of them has several itself.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        // Errors of TOML end with a line break.
        text.push_str(error.to_string().trim_end());
        cause = error.source();
    }
    text
}
