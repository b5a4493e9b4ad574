//! The code of a source whose comments are those of C: without its comments, or without its texts as well. Words in those
//! mean nothing.

mod script;

use std::ops::Range;
use std::path::Path;

use self::script::Script;

/// A language, as far as its comments and texts differ from those of others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    C,
    Go,
    /// TypeScript as well.
    JavaScript,
    Rust,
}

/// Returns the source without its comments, in the same lines. A file that cannot be read is empty: the language's own
/// tools say what is wrong with it.
pub(super) fn code_of(file: &Path, syntax: Syntax) -> String {
    without_comments(&std::fs::read_to_string(file).unwrap_or_default(), syntax)
}

/// Returns the source like [`code_of`], and with nothing between the quotation marks of its texts: a word in it is code.
pub(super) fn bare_code_of(file: &Path, syntax: Syntax) -> String {
    without_texts(&std::fs::read_to_string(file).unwrap_or_default(), syntax)
}

pub(super) fn without_comments(source: &str, syntax: Syntax) -> String {
    code(source, syntax, Texts::Whole)
}

pub(super) fn without_texts(source: &str, syntax: Syntax) -> String {
    code(source, syntax, Texts::Empty)
}

/// What remains of a source's texts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    Whole,
    /// The quotation marks, and the ends of lines.
    Empty,
}

/// A text at the beginning of a source: of a string, of a character, of a regular expression, or of a piece of a template.
struct Text {
    /// Where it is without its marks.
    content: Range<usize>,
    /// The length with the marks.
    length: usize,
}

impl Text {
    /// Creates a text with the length of the mark at its end; 0 if the end is missing.
    fn new(content: Range<usize>, mark: usize) -> Text {
        Text {
            length: content.end + mark,
            content,
        }
    }
}

/// Returns a source without its comments.
fn code(source: &str, syntax: Syntax, texts: Texts) -> String {
    let mut code = String::with_capacity(source.len());
    // In other languages nothing depends on what precedes a text.
    let mut script = (syntax == Syntax::JavaScript).then(Script::default);
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if let Some(length) = comment_length(rest, syntax) {
            push_comment(&mut code, &rest[..length]);
            length
        } else if let Some(text) = text_at(rest, first, syntax, script.as_mut()) {
            push_text(&mut code, rest, &text, texts);
            if let Some(script) = &mut script {
                script.add_text(&rest[..text.length]);
            }
            text.length
        } else {
            // A word is one token, because a part of it means something else.
            let word = rest.find(|char| !is_part_of_word(char));
            let length = word.unwrap_or(rest.len()).max(first.len_utf8());
            code.push_str(&rest[..length]);
            if let Some(script) = &mut script {
                script.add(&rest[..length]);
            }
            length
        };
        rest = &rest[length..];
    }
    code
}

/// Returns the length of the comment at the beginning of a source.
fn comment_length(source: &str, syntax: Syntax) -> Option<usize> {
    if source.starts_with("//") {
        return Some(source.find('\n').unwrap_or(source.len()));
    }
    let inner = source.strip_prefix("/*")?;
    if syntax != Syntax::Rust {
        return Some(inner.find("*/").map_or(source.len(), |end| end + 4));
    }
    // Those of Rust may contain others.
    let mut depth = 0_usize;
    let mut at = 0;
    while at < source.len() {
        let mark = source.as_bytes().get(at..at + 2);
        match mark {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
    Some(source.len())
}

/// Returns the text at the beginning of a source, whose first character is `first`. A source in JavaScript has a script.
fn text_at(
    source: &str,
    first: char,
    syntax: Syntax,
    script: Option<&mut Script<'_>>,
) -> Option<Text> {
    match (syntax, first) {
        (Syntax::Rust, '"') => Some(quoted(source, Lines::Several)),
        (Syntax::Rust, '\'') => character(source),
        (Syntax::Rust, 'b' | 'c' | 'r') => raw_string(source),
        (_, '"' | '\'') => Some(quoted(source, Lines::One)),
        (Syntax::Go, '`') => Some(up_to(source, 1, "`")),
        (Syntax::JavaScript, _) => script?.text_at(source, first),
        _ => None,
    }
}

/// In how many lines a text may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// A text without an end ends with its line. The compiler reports that, unless it is none: an apostrophe in C may be in
    /// the words of an `#error`.
    One,
    Several,
}

/// Returns the text that the quotation mark at the beginning of a source begins.
fn quoted(source: &str, lines: Lines) -> Text {
    let mut chars = source.char_indices();
    let mark = chars.next().map(|(_, mark)| mark);
    while let Some((at, char)) = chars.next() {
        if Some(char) == mark {
            return Text::new(1..at, 1);
        }
        if char == '\n' && lines == Lines::One {
            return Text::new(1..at, 0);
        }
        // The end of a line may have two characters.
        if char == '\\' && source[at..].starts_with("\\\r\n") {
            chars.nth(1);
        } else if char == '\\' {
            chars.next();
        }
    }
    Text::new(1..source.len(), 0)
}

/// Returns the text that begins at `start` and ends before `end`.
fn up_to(source: &str, start: usize, end: &str) -> Text {
    match source[start..].find(end) {
        Some(length) => Text::new(start..start + length, end.len()),
        None => Text::new(start..source.len(), 0),
    }
}

/// Returns the character that the apostrophe at the beginning of a source in Rust begins, unless that belongs to a lifetime.
fn character(source: &str) -> Option<Text> {
    let mut chars = source.chars().skip(1);
    match (chars.next()?, chars.next()) {
        ('\\', _) => Some(quoted(source, Lines::One)),
        (char, Some('\'')) => Some(Text::new(1..1 + char.len_utf8(), 1)),
        _ => None,
    }
}

/// Returns the string without escapes at the beginning of a source in Rust, such as `r#"\"#`.
fn raw_string(source: &str) -> Option<Text> {
    let mut prefixes = ["r", "br", "cr"].iter();
    let marks = prefixes.find_map(|prefix| source.strip_prefix(prefix))?;
    let content = marks.trim_start_matches('#').strip_prefix('"')?;
    let hashes = marks.len() - content.len() - 1;
    let start = source.len() - content.len();
    Some(up_to(source, start, &format!("\"{}", "#".repeat(hashes))))
}

fn push_comment(code: &mut String, comment: &str) {
    code.extend(comment.chars().filter(|char| *char == '\n'));
    // What is beside it stays two words.
    if comment.starts_with("/*") {
        code.push(' ');
    }
}

fn push_text(code: &mut String, source: &str, text: &Text, texts: Texts) {
    let content = &source[text.content.clone()];
    let begin = &source[..text.content.start];
    let end = &source[text.content.end..text.length];
    if texts == Texts::Whole {
        code.push_str(&source[..text.length]);
        return;
    }
    // The braces of a value in a template are no block.
    let is_of_value = |char: char| "${}".contains(char);
    code.push_str(&begin.replace(is_of_value, " "));
    code.extend(content.chars().filter(|char| *char == '\n'));
    code.push_str(&end.replace(is_of_value, " "));
}

fn is_part_of_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_' || char == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Syntax; 4] = [Syntax::C, Syntax::Go, Syntax::JavaScript, Syntax::Rust];

    #[test]
    fn comments_go_and_lines_and_texts_stay() {
        for (text, expected) in [
            ("a // b\nc", "a \nc"),
            ("a /* b\n * c */ d", "a \n  d"),
            ("a /*/ b */ c", "a   c"),
            ("a /* é */ b // é", "a   b "),
            ("\"// a\" // b", "\"// a\" "),
            (r#""\"// a" // b"#, r#""\"// a" "#),
            (r#""\\" // b"#, r#""\\" "#),
            ("'\\'' // b", "'\\'' "),
            ("'\"' // b", "'\"' "),
            ("a / b /", "a / b /"),
            ("a /= b / c // d", "a /= b / c "),
            ("/* a", " "),
            ("é", "é"),
            ("\"é", "\"é"),
            ("'\\", "'\\"),
            ("", ""),
        ] {
            for syntax in ALL {
                assert_eq!(without_comments(text, syntax), expected, "{text}");
            }
        }
        for (text, expected) in [
            ("a // b\nc", "a \nc"),
            ("f(\"a // b\", 'c') // d", "f(\"\", '') "),
            (r#"f("a\"b")"#, r#"f("")"#),
            ("f(\"a\\\nb\") // c", "f(\"\n\") "),
            ("f(\"a\\\r\nb\") // c", "f(\"\n\") "),
        ] {
            for syntax in ALL {
                assert_eq!(without_texts(text, syntax), expected, "{text}");
            }
        }
    }

    #[test]
    fn a_text_in_one_line_ends_with_it() {
        for syntax in [Syntax::C, Syntax::Go, Syntax::JavaScript] {
            assert_eq!(without_texts("\"a\nb", syntax), "\"\nb");
            assert_eq!(without_comments("don't\n/* a */b", syntax), "don't\n b");
        }
    }

    #[test]
    fn a_backtick_begins_a_text_only_in_languages_that_have_such_texts() {
        for syntax in [Syntax::Go, Syntax::JavaScript] {
            assert_eq!(without_comments("`a\n// b` // c", syntax), "`a\n// b` ");
            assert_eq!(without_texts("`a\n\"b` d", syntax), "`\n` d");
        }
        // Go has no escapes in it.
        assert_eq!(without_texts(r"f(`C:\`) // `a", Syntax::Go), "f(``) ");
        assert_eq!(
            without_texts("`a\nb\\\nc\\`` d", Syntax::JavaScript),
            "`\n\n` d"
        );
        assert_eq!(without_comments("` /* a */ `", Syntax::C), "`   `");
    }

    #[test]
    fn lifetimes_raw_strings_and_comments_in_comments_of_rust_are_recognized() {
        for (text, expected) in [
            (
                "fn f<'a>(a: &'a str, b: &'static str) { \"/*\" }",
                "fn f<'a>(a: &'a str, b: &'static str) { \"/*\" }",
            ),
            (
                "const A: &'static str = \"it's /* a\"; // b",
                "const A: &'static str = \"it's /* a\"; ",
            ),
            ("\"/v3/a\n /v3/*\n\" // b", "\"/v3/a\n /v3/*\n\" "),
            (
                "['\"', '\\'', b'/', '\\u{2f}'] // a",
                "['\"', '\\'', b'/', '\\u{2f}'] ",
            ),
            (r#"r"\" // a"#, r#"r"\" "#),
            (r##"(br#"/* " "#) // a"##, r##"(br#"/* " "#) "##),
            ("r#type // a", "r#type "),
            ("her\"\\\"\" // a", "her\"\\\"\" "),
            ("a /* b /* c */ d\n*/ e", "a \n  e"),
            ("a /* b /* c */ d", "a  "),
            ("r#\"a", "r#\"a"),
            ("r##", "r##"),
            ("'", "'"),
        ] {
            assert_eq!(without_comments(text, Syntax::Rust), expected, "{text}");
        }
        assert_eq!(without_texts("r#\"a\nb\"# c", Syntax::Rust), "r#\"\n\"# c");
    }

    #[test]
    fn only_scripts_have_regular_expressions() {
        let text = r"a = /\/*$/;";
        assert_eq!(without_comments(text, Syntax::JavaScript), text);
        for syntax in [Syntax::C, Syntax::Go, Syntax::Rust] {
            assert_eq!(without_comments(text, syntax), r"a = /\ ");
        }
    }

    /// Attack: a source that takes time out of proportion to its length.
    #[test]
    fn a_long_source_takes_time_in_proportion_to_its_length() {
        for part in [
            "=/[", "`${(", "}`", "r#", "r#\"", "'", "'\\", "/*", "/ ", "a ", "(", "if(", "\"", "=/",
        ] {
            let source = part.repeat(1 << 16);
            for syntax in ALL {
                let code = without_comments(&source, syntax);
                assert!(code.len() <= source.len(), "{part}");
            }
        }
    }
}
