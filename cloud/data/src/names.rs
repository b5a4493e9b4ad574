//! Names of indexes and foreign keys in the database. Tables are created with them, and errors of the databases are
//! identified by them.

use sha2::{Digest, Sha256};

/// PostgreSQL truncates longer names.
const LONGEST_NAME: usize = 63;

/// Returns the name of the index that makes these fields unique; errors are identified by it.
pub(crate) fn unique_name(table: &str, fields: &[&str]) -> String {
    name("unique", table, fields)
}

/// Returns the name of a non-unique index.
pub(crate) fn index_name(table: &str, fields: &[&str]) -> String {
    name("index", table, fields)
}

/// Returns the name of the foreign key of a link; errors are identified by it.
pub(crate) fn foreign_key_name(table: &str, field: &str) -> String {
    name("link", table, &[field])
}

fn name(kind: &str, table: &str, fields: &[&str]) -> String {
    let name = format!("{kind}:{table}:{}", fields.join(","));
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let digest = hex::encode(Sha256::digest(&name));
    let prefix: String = name.chars().take(LONGEST_NAME - 9).collect();
    format!("{prefix}:{}", digest.get(..8).unwrap_or_default())
}
