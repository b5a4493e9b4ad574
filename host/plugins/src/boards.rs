//! Patterns of device types, in which `*` matches any text.

use std::collections::BTreeSet;

use plugin_manifest::glob;
use serde::{Deserialize, Deserializer};

/// The boards on which a plugin takes precedence over one that provides the same on all boards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BoardPatterns(BTreeSet<String>);

impl BoardPatterns {
    /// Returns whether devices of this type match.
    pub(crate) fn include(&self, device_type: &str) -> bool {
        self.0.iter().any(|pattern| glob(pattern, device_type))
    }

    pub(crate) fn extend(&mut self, others: &BoardPatterns) {
        self.0.extend(others.0.iter().cloned());
    }

    /// Returns whether the pattern matches everything, so that it names no board.
    pub(crate) fn is_every_board(pattern: &str) -> bool {
        pattern.bytes().all(|byte| byte == b'*')
    }
}

impl<'de> Deserialize<'de> for BoardPatterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let patterns = BTreeSet::<String>::deserialize(deserializer)?;
        if let Some(pattern) = patterns
            .iter()
            .find(|pattern| BoardPatterns::is_every_board(pattern))
        {
            return Err(serde::de::Error::custom(format!(
                "`{pattern}` is not a board: name those that the plugin is made for, or leave `boards` out"
            )));
        }
        Ok(BoardPatterns(patterns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Section {
        boards: BoardPatterns,
    }

    #[test]
    fn a_star_alone_is_no_board() {
        let section: Section = toml::from_str("boards = [\"acme-*\", \"*-gateway\"]").unwrap();
        assert!(section.boards.include("acme-1"));
        assert!(section.boards.include("other-gateway"));
        assert!(!section.boards.include("generic"));
        for every in ["*", "**", ""] {
            let text = format!("boards = [\"acme-*\", \"{every}\"]");
            let error = toml::from_str::<Section>(&text).unwrap_err();
            assert!(error.to_string().contains("is not a board"), "{error}");
        }
    }
}
