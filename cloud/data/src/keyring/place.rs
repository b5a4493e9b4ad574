//! Where in the database a value stands.

use super::VERSION;

/// What a value is of. It opens nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("`{column}` of the row {row} of `{table}`")]
pub struct Place {
    table: &'static str,
    column: &'static str,
    row: String,
}

impl Place {
    /// A column of the row with this id.
    #[must_use]
    pub fn of_row(table: &'static str, column: &'static str, id: i64) -> Self {
        Place {
            table,
            column,
            row: id.to_string(),
        }
    }

    /// What the platform remembers under a name ([`crate::setting`]).
    #[must_use]
    pub fn of_setting(name: &str) -> Self {
        Place {
            table: "platform_setting",
            column: "value",
            row: name.to_owned(),
        }
    }

    /// No part can hold the character that stands between them.
    pub(super) fn authenticated(&self, key: &str) -> Vec<u8> {
        let Place { table, column, row } = self;
        [VERSION, key, table, column, row].join("\0").into_bytes()
    }
}
