//! Parsing of the format: the readable parts of a text, and what was skipped.

use super::{Block, Conf, in_word, is_word};

/// The contents of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParsedConf {
    pub(crate) conf: Conf,
    /// The skipped parts, a sentence for each.
    pub(crate) warnings: Vec<String>,
}

/// How many warnings are kept for one text.
pub(super) const WARNINGS: usize = 16;
/// How much of a block's name a warning shows, in characters.
const SHOWN: usize = 64;

/// Reads everything in `text` that can be read.
pub(crate) fn parse(text: &str) -> ParsedConf {
    let mut scanner = Scanner {
        text,
        at: 0,
        warnings: Vec::new(),
    };
    let mut conf = Conf::default();
    loop {
        scanner.skip_blank();
        let Some(next) = scanner.peek() else { break };
        let begun = scanner.at;
        match scanner.opening() {
            Some(name) => {
                if let Some(fields) = scanner.fields(&name, begun) {
                    conf.blocks.push(Block { name, fields });
                }
            }
            None => {
                let what = if next == '}' {
                    "closes a block that was not opened"
                } else {
                    "is not a block"
                };
                scanner.at = begun;
                scanner.skip_line(what);
            }
        }
    }
    ParsedConf {
        conf,
        warnings: scanner.warnings,
    }
}

struct Scanner<'a> {
    text: &'a str,
    /// Invariant: at the beginning of a character.
    at: usize,
    warnings: Vec<String>,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, expected: char) -> bool {
        let is_next = self.peek() == Some(expected);
        if is_next {
            self.at += expected.len_utf8();
        }
        is_next
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn skip_space(&mut self) {
        self.take_while(|c| c.is_ascii_whitespace() || c == '\u{b}');
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        loop {
            self.skip_space();
            let rest = self.rest();
            if rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/").map_or(rest.len(), |at| at + 4);
                self.at += end;
            } else {
                return;
            }
        }
    }

    fn word(&mut self) -> Option<&'a str> {
        let word = self.take_while(in_word);
        is_word(word).then_some(word)
    }

    /// Reads `name {`.
    fn opening(&mut self) -> Option<String> {
        let name = self.word()?;
        self.skip_space();
        self.take('{').then(|| name.to_owned())
    }

    /// Reads up to and including the brace that closes the block, which must be followed by white space
    /// or the end of the text. Returns `None` if there is no such brace.
    fn fields(&mut self, name: &str, begun: usize) -> Option<Vec<(String, String)>> {
        let mut fields = Vec::new();
        loop {
            self.skip_blank();
            let begins = self.at;
            let closes = self.take('}');
            if closes && self.peek().is_none_or(|next| next.is_ascii_whitespace()) {
                return Some(fields);
            }
            if !closes && self.peek().is_none() {
                let line = self.line_of(begun);
                let name: String = name.chars().take(SHOWN).collect();
                self.warn(format!(
                    "the block `{name}` that begins on line {line} is not closed, and was skipped"
                ));
                return None;
            }
            let field = if closes { None } else { self.assignment() };
            match field {
                Some(field) => fields.push(field),
                None => {
                    self.at = begins;
                    self.skip_line("is not an assignment");
                }
            }
        }
    }

    /// Reads `key = value;`.
    fn assignment(&mut self) -> Option<(String, String)> {
        let key = self.word()?.to_owned();
        self.skip_space();
        if !self.take('=') {
            return None;
        }
        let behind = self.at;
        if let Some(value) = self.value() {
            return Some((key, value));
        }
        self.at = behind;
        let value = self.rest_of_line()?;
        Some((key, value))
    }

    /// Reads a value as redsocks does, with its semicolon.
    fn value(&mut self) -> Option<String> {
        self.skip_space();
        let value = if self.take('"') {
            self.quoted()?
        } else {
            let value = self.take_while(|c| in_word(c) || c == '/');
            (!value.is_empty()).then(|| value.to_owned())?
        };
        self.skip_space();
        self.take(';').then_some(value)
    }

    /// Reads up to and including the closing quote.
    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        loop {
            value.push_str(self.take_while(|c| !matches!(c, '"' | '\\' | '\n')));
            if self.take('"') {
                return Some(value);
            }
            if !self.take('\\') {
                return None;
            }
            let escaped = self.peek()?;
            self.at += escaped.len_utf8();
            value.push(match escaped {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '"' | '\'' | '\\' => escaped,
                _ => return None,
            });
        }
    }

    /// Reads a value that redsocks would not read, up to the last semicolon of the line: an older
    /// program writes passwords between quotes without escaping them.
    fn rest_of_line(&mut self) -> Option<String> {
        let line = self.take_while(|c| c != '\n');
        let (value, _) = line.rsplit_once(';')?;
        let value = value.trim();
        let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        match inner {
            Some(inner) => Some(inner.to_owned()),
            None => (!value.is_empty()).then(|| value.to_owned()),
        }
    }

    /// Skips to the next line. The warning does not quote the line, which may contain a password.
    fn skip_line(&mut self, what: &str) {
        let line = self.line_of(self.at);
        self.warn(format!("line {line} {what}, and was skipped"));
        self.take_while(|c| c != '\n');
    }

    fn line_of(&self, at: usize) -> usize {
        if self.warnings.len() >= WARNINGS {
            return 0;
        }
        self.text.as_bytes()[..at]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(warning);
        }
    }
}
