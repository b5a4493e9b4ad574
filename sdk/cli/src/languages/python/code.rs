//! The text of a Python source without its comments and strings.

/// Returns the source with a space for each character of comments and strings, in the same lines.
pub(super) fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let length = match char {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => string_length(rest, char),
            _ => 0,
        };
        if length == 0 {
            code.push(char);
            rest = &rest[char.len_utf8()..];
            continue;
        }
        let blank = rest[..length].chars();
        code.extend(blank.map(|char| if char == '\n' { '\n' } else { ' ' }));
        rest = &rest[length..];
    }
    code
}

/// Returns the length of the string at the beginning of `text`, which begins with the quotation mark `mark`.
fn string_length(text: &str, mark: char) -> usize {
    let triple: String = [mark; 3].iter().collect();
    let (end, is_long) = if text.starts_with(&triple) {
        (triple.as_str(), true)
    } else {
        (&triple[..1], false)
    };
    let mut is_escaped = false;
    for (at, char) in text.char_indices().skip(end.len()) {
        if is_escaped {
            is_escaped = false;
        } else if char == '\\' {
            is_escaped = true;
        } else if char == '\n' && !is_long {
            // It has no end; Python reports that.
            return at;
        } else if text[at..].starts_with(end) {
            return at + end.len();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_go_and_lines_stay() {
        for (text, expected) in [
            ("a # b\nc", "a    \nc"),
            ("a = 'b # c' # d", "a =            "),
            ("\"\"\"a\nimport b\n\"\"\"\nc", "    \n        \n   \nc"),
            ("'a\\'b' c", "       c"),
            ("'a\nb", "  \nb"),
            ("''a", "  a"),
            ("\"\"\"a\"b\"\"\"c", "         c"),
            ("\"\"\"a", "    "),
            ("'é' a", "    a"),
            ("'", " "),
        ] {
            assert_eq!(without_comments_and_strings(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_source_takes_time_in_proportion_to_its_length() {
        let text = "'".repeat(1 << 20) + &"\"\"\"".repeat(1 << 18) + &"\\".repeat(1 << 20);
        assert_eq!(without_comments_and_strings(&text).len(), text.len());
    }
}
