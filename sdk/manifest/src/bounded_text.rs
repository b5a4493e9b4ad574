//! The bound on the length of a manifest's texts.

use std::fmt;

/// The longest reason, version, board or text about the plugin, in bytes.
pub(crate) const TEXT: usize = 512;

/// Checks the length of a text, for example of a reason; `what` says which text it is.
///
/// # Errors
/// If it is empty or too long.
pub fn check_text(what: impl fmt::Display, text: &str) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > TEXT {
        let length = text.len();
        return Err(format!(
            "{what} must have 1 to {TEXT} bytes, and has {length}"
        ));
    }
    Ok(())
}
