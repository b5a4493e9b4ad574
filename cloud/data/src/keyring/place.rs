//! The place of a value in the database.

use super::VERSION;

/// The place that a value belongs to. It can be decrypted nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("`{column}` of the row {row} of `{table}`")]
pub struct SecretLocation {
    table: &'static str,
    column: &'static str,
    row: String,
}

impl SecretLocation {
    /// Creates the place of a column in the row with this id.
    #[must_use]
    pub fn from_row(table: &'static str, column: &'static str, id: i64) -> Self {
        SecretLocation {
            table,
            column,
            row: id.to_string(),
        }
    }

    /// Creates the place of one of the platform's settings ([`crate::setting`]).
    #[must_use]
    pub fn from_setting(name: &str) -> Self {
        SecretLocation {
            table: "platform_setting",
            column: "value",
            row: name.to_owned(),
        }
    }

    /// No part can contain the separator between them.
    pub(super) fn authenticated(&self, key: &str) -> Vec<u8> {
        let SecretLocation { table, column, row } = self;
        [VERSION, key, table, column, row].join("\0").into_bytes()
    }
}
