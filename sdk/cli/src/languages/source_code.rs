//! The code of a source: without its comments, or without its texts as well. Words in those mean nothing.

use std::path::Path;

/// Returns the source without its comments, which are those of C, in the same lines. A file that cannot be read is
/// empty: the language's own tools say what is wrong with it.
pub(super) fn code_of(file: &Path) -> String {
    without_comments(&std::fs::read_to_string(file).unwrap_or_default())
}

/// Returns the source like [`code_of`], and with nothing between the quotation marks of its texts: a word in it is code.
pub(super) fn bare_code_of(file: &Path) -> String {
    without_texts(&std::fs::read_to_string(file).unwrap_or_default())
}

pub(super) fn without_comments(text: &str) -> String {
    code(text, Texts::Whole)
}

pub(super) fn without_texts(text: &str) -> String {
    code(text, Texts::Empty)
}

/// What remains of a source's texts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    Whole,
    /// The quotation marks, and the ends of lines.
    Empty,
}

/// Returns a source without its comments.
fn code(text: &str, texts: Texts) -> String {
    let mut code = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // The quotation mark that ends the present text.
    let mut end = None;
    while let Some(char) = chars.next() {
        if let Some(mark) = end {
            let stays = |char: char| texts == Texts::Whole || char == mark || char == '\n';
            code.extend(Some(char).filter(|char| stays(*char)));
            // Only a text between backticks has several lines. A quotation mark in a regular expression begins none.
            if char == mark || (char == '\n' && mark != '`') {
                end = None;
            } else if char == '\\' {
                let escaped = chars.next();
                code.extend(escaped.filter(|char| texts == Texts::Whole || *char == '\n'));
            }
            continue;
        }
        match (char, chars.peek()) {
            ('/', Some('/')) => while chars.next_if(|next| *next != '\n').is_some() {},
            ('/', Some('*')) => {
                let mut before = ' ';
                chars.next();
                for inner in chars.by_ref() {
                    if inner == '\n' {
                        code.push(inner);
                    }
                    if (before, inner) == ('*', '/') {
                        break;
                    }
                    before = inner;
                }
                code.push(' ');
            }
            ('"' | '\'' | '`', _) => {
                end = Some(char);
                code.push(char);
            }
            _ => code.push(char),
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_lines_and_texts_stay() {
        for (text, expected) in [
            ("a // b\nc", "a \nc"),
            ("a /* b\n * c */ d", "a \n  d"),
            ("a /*/ b */ c", "a   c"),
            ("\"// a\" // b", "\"// a\" "),
            (r#""\"// a" // b"#, r#""\"// a" "#),
            ("`a\n// b` // c", "`a\n// b` "),
            ("/['\"]/;\n// a", "/['\"]/;\n"),
            ("a / b /", "a / b /"),
            ("/* a", " "),
        ] {
            assert_eq!(without_comments(text), expected, "{text}");
        }
        for (text, expected) in [
            ("a // b\nc", "a \nc"),
            ("f(\"a // b\", 'c') // d", "f(\"\", '') "),
            (r#"f("a\"b")"#, r#"f("")"#),
            ("`a\nb\\\nc` d", "`\n\n` d"),
            ("\"a\nb", "\"\nb"),
        ] {
            assert_eq!(without_texts(text), expected, "{text}");
        }
    }
}
