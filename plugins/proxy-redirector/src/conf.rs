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

mod parser;

pub(crate) use parser::{ParsedConf, parse};

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
        let place = self.blocks.iter().position(|block| block.name == name);
        let at = place.unwrap_or_else(|| {
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

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
