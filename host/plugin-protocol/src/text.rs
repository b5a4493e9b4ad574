//! Makes text from plugins fit for logs and answers: it is as hostile as anything else from a plugin.

/// The longest text from a plugin that is passed on, in bytes: an error, or a line of the log.
pub const LONGEST: usize = 4 << 10;

/// Turns `text` into one line of at most `longest` bytes plus three for an ellipsis, without line breaks or other
/// characters that could pass for something else in a terminal or a log. Escaped characters count in their escaped
/// form.
#[must_use]
pub fn one_line(text: &str, longest: usize) -> String {
    let mut line = String::with_capacity(text.len().min(longest));
    for char in text.trim_end().chars() {
        let before = line.len();
        match char {
            // Each character that turns the direction of writing would rewrite the rest of the line for its reader.
            char if (char.is_control() && char != '\t') || turns(char) => {
                line.extend(char.escape_default());
            }
            char => line.push(char),
        }
        if line.len() > longest {
            line.truncate(before);
            return line + "...";
        }
    }
    line
}

/// Cuts `text` to [`LONGEST`] bytes, at the end of a character; line breaks stay.
#[must_use]
pub fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        let mut end = LONGEST;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.shrink_to_fit();
    }
    text
}

/// Returns whether a text has no control characters, and none that end a line or turn the direction of writing: it can
/// appear in a line of a terminal, a log or a page unchanged.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    !text.chars().any(|char| char.is_control() || turns(char))
}

/// Returns whether a character ends a line for some readers, or turns the direction of the text after it.
fn turns(char: char) -> bool {
    matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_of_bounded_length() {
        let line = |text: &str| one_line(text, LONGEST);
        assert_eq!(line("a\nb\u{1b}[0m\tc\r\n"), "a\\nb\\u{1b}[0m\tc");
        assert_eq!(line(&"x".repeat(LONGEST)).len(), LONGEST);
        assert_eq!(line(&"ä".repeat(LONGEST)), "ä".repeat(LONGEST / 2) + "...");
    }

    #[test]
    fn escaped_text_is_no_longer_than_plain_text() {
        for char in ["\n", "\u{1}", "\u{85}", "\u{202e}", "\u{2028}", "a\r"] {
            for longest in [0, 1, 7, 1024, LONGEST] {
                let line = one_line(&(char.repeat(LONGEST) + "x"), longest);
                assert!(line.len() <= longest + 3, "{char:?}: {}", line.len());
                assert!(
                    !line.contains(|c: char| c.is_control() || turns(c)),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn a_plain_text_is_one_line_that_reads_as_it_is_written() {
        for text in [
            "",
            "21.5 \u{b0}C",
            "<b>&amp;</b>",
            "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        ] {
            assert!(is_plain(text), "{text:?}");
        }
        for text in [
            "a\n",
            "\t",
            "\u{1b}[2J",
            "\u{0}",
            "\u{9b}2J",
            "\u{202e}",
            "\u{2028}",
            "\u{2066}",
        ] {
            assert!(!is_plain(text), "{text:?}");
        }
    }

    #[test]
    fn a_text_is_cut_at_the_end_of_a_character() {
        assert_eq!(cut("short\ntext".into()), "short\ntext");
        assert_eq!(cut("x".repeat(LONGEST)).len(), LONGEST);
        assert_eq!(cut("x".repeat(LONGEST + 1)).len(), LONGEST);
        assert_eq!(
            cut("x".to_owned() + &"ä".repeat(LONGEST)).len(),
            LONGEST - 1
        );
    }
}
