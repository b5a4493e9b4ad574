//! The file format of redsocks: blocks of `key = value;`, as its own parser reads them and, where a
//! person or an older program has written what it would refuse, as far as that can be understood.
//!
//! ```text
//! redsocks {
//!     type = socks5;
//!     password = "with \"quotes\" and } braces";
//! }
//! ```
//!
//! A line that is no assignment is reported and skipped (docs/spec/device.md#proxy-files). Comments are not kept.

/// A configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conf {
    pub(crate) blocks: Vec<Block>,
}

/// One block; a name may stand several times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    // invariant: a word, as `is_word` has it.
    pub(crate) name: String,
    /// Key, which is a word, and value. Of a repeated key the last counts, as for redsocks.
    pub(crate) fields: Vec<(String, String)>,
}

/// What a text holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParsedConf {
    pub(crate) conf: Conf,
    /// What was skipped, a sentence each.
    pub(crate) warnings: Vec<String>,
}

/// How many warnings are kept of one text.
const WARNINGS: usize = 16;
/// How much of a block's name a warning shows, in characters.
const SHOWN: usize = 64;

impl Block {
    pub(crate) fn new(name: &str) -> Block {
        Block {
            name: name.to_owned(),
            fields: Vec::new(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let mut found = self.fields.iter().rev().filter(|(name, _)| name == key);
        found.next().map(|(_, value)| value.as_str())
    }

    /// Sets `key` where it stands, or at the end; what else it was set to is gone.
    pub(crate) fn set(&mut self, key: &str, value: &str) {
        let at = self.fields.iter().position(|(name, _)| name == key);
        self.fields.retain(|(name, _)| name != key);
        let at = at.unwrap_or(self.fields.len()).min(self.fields.len());
        self.fields.insert(at, (key.to_owned(), value.to_owned()));
    }

    /// Sets `key` where it is not set.
    pub(crate) fn set_default(&mut self, key: &str, value: &str) {
        if self.get(key).is_none() {
            self.set(key, value);
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.fields.retain(|(name, _)| name != key);
    }
}

impl Conf {
    /// The first block of this name.
    pub(crate) fn block(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name == name)
    }

    /// The first block of this name, made at place `at` where there is none.
    pub(crate) fn block_or_new(&mut self, name: &str, at: usize) -> &mut Block {
        let found = self.blocks.iter().position(|block| block.name == name);
        let at = found.unwrap_or_else(|| {
            let at = at.min(self.blocks.len());
            self.blocks.insert(at, Block::new(name));
            at
        });
        &mut self.blocks[at]
    }

    /// Removes the first block of this name.
    pub(crate) fn remove_block(&mut self, name: &str) {
        if let Some(at) = self.blocks.iter().position(|block| block.name == name) {
            self.blocks.remove(at);
        }
    }

    /// The text, with a line end at its end, without which redsocks misses the last line.
    pub(crate) fn write(&self) -> String {
        let mut text = String::new();
        for (at, Block { name, fields }) in self.blocks.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            text.push_str(name);
            text.push_str(" {\n");
            for (key, value) in fields {
                text.push('\t');
                text.push_str(key);
                text.push_str(" = ");
                write_value(&mut text, key, value);
                text.push_str(";\n");
            }
            text.push_str("}\n");
        }
        text
    }
}

/// Login and password are always quoted, as programs expect that read the file by other means; the rest
/// only where redsocks would not read it otherwise.
fn write_value(text: &mut String, key: &str, value: &str) {
    if !matches!(key, "login" | "password") && (is_word(value) || is_number_or_address(value)) {
        text.push_str(value);
        return;
    }
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            other => text.push(other),
        }
    }
    text.push('"');
}

/// What redsocks reads without quotes, other than numbers.
pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(in_word)
}

fn in_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-')
}

fn is_number_or_address(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Reads all that can be read of `text`.
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
    /// invariant: at a character's beginning.
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

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn skip_space(&mut self) {
        self.take_while(|c| c.is_ascii_whitespace() || c == '\u{b}');
    }

    /// White space and comments.
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

    /// `name {`
    fn opening(&mut self) -> Option<String> {
        let name = self.word()?;
        self.skip_space();
        self.take('{').then(|| name.to_owned())
    }

    /// Up to and with the brace that closes the block, which has white space or the end behind it.
    /// None where there is no such brace.
    fn fields(&mut self, name: &str, begun: usize) -> Option<Vec<(String, String)>> {
        let mut fields = Vec::new();
        loop {
            self.skip_blank();
            let begins = self.at;
            if self.take('}') {
                if self.peek().is_none_or(|next| next.is_ascii_whitespace()) {
                    return Some(fields);
                }
                self.at = begins;
                self.skip_line("is not an assignment");
                continue;
            }
            if self.peek().is_none() {
                let line = self.line_of(begun);
                let name: String = name.chars().take(SHOWN).collect();
                self.warn(format!(
                    "the block `{name}` that begins on line {line} is not closed, and was skipped"
                ));
                return None;
            }
            match self.assignment() {
                Some(field) => fields.push(field),
                None => {
                    self.at = begins;
                    self.skip_line("is not an assignment");
                }
            }
        }
    }

    /// `key = value;`
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

    /// A value as redsocks reads it, with its semicolon.
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

    /// Up to and with the closing quote.
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

    /// A value that redsocks would not read, up to the last semicolon of the line: an older program puts
    /// a password between quotes whatever is in it.
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

    /// Skips to the next line. What stands in the line is not told: it may be a password.
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

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
