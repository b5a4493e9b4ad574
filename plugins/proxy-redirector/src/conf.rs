//! The file format of redsocks: blocks of `key = value;`, as its own parser reads them. Text by people or older
//! programs that redsocks would refuse is read as far as it can be understood.
//!
//! ```text
//! redsocks {
//!     type = socks5;
//!     password = "with \"quotes\" and } braces";
//! }
//! ```
//!
//! A line that is not an assignment is reported and skipped (docs/spec/device.md#proxy-files). Comments are not
//! kept.

mod parser;

pub(crate) use parser::{ParsedConf, parse};

/// A configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conf {
    pub(crate) blocks: Vec<Block>,
}

/// One block; several may have the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    // Invariant: a word, as defined by `is_word`.
    pub(crate) name: String,
    /// Keys, which are words, and their values. Of a repeated key the last value counts, as in redsocks.
    pub(crate) fields: Vec<(String, String)>,
}

impl Block {
    pub(crate) fn new(name: &str) -> Block {
        Block {
            name: name.to_owned(),
            fields: Vec::new(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let mut values = self.fields.iter().rev().filter(|(name, _)| name == key);
        values.next().map(|(_, value)| value.as_str())
    }

    /// Sets `key` at its present place, or at the end; its other values are removed.
    pub(crate) fn set(&mut self, key: &str, value: &str) {
        let at = self.fields.iter().position(|(name, _)| name == key);
        self.fields.retain(|(name, _)| name != key);
        let at = at.unwrap_or(self.fields.len()).min(self.fields.len());
        self.fields.insert(at, (key.to_owned(), value.to_owned()));
    }

    /// Sets `key` if it is not set.
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
    /// Returns the first block with this name.
    pub(crate) fn block(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name == name)
    }

    /// Returns the first block with this name; if there is none, it is created at place `at`.
    pub(crate) fn block_or_new(&mut self, name: &str, at: usize) -> &mut Block {
        let place = self.blocks.iter().position(|block| block.name == name);
        let at = place.unwrap_or_else(|| {
            let at = at.min(self.blocks.len());
            self.blocks.insert(at, Block::new(name));
            at
        });
        &mut self.blocks[at]
    }

    /// Removes the first block with this name.
    pub(crate) fn remove_block(&mut self, name: &str) {
        if let Some(at) = self.blocks.iter().position(|block| block.name == name) {
            self.blocks.remove(at);
        }
    }

    /// Returns the text. It ends with a line end, without which redsocks misses the last line.
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

/// Writes a value. Login and password are always quoted, as other programs that read the file expect; other
/// values only if redsocks would not read them without quotes.
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

/// Returns whether redsocks reads the text without quotes; this does not cover numbers.
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

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
