//! Excerpts of texts that others wrote, for messages.

/// The number of characters of a value, or of one part of a path, that are shown.
const MAX_SHOWN: usize = 80;

/// Returns at most [`MAX_SHOWN`] characters, none of them a control character: the text is shown on
/// terminals and sent through the cloud's proxy.
pub(crate) fn cut(text: &str) -> String {
    let mut start: String = text
        .chars()
        .take(MAX_SHOWN)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        start.push('…');
    }
    start
}
