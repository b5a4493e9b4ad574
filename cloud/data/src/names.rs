//! Names of indexes and foreign keys in the database. Tables are made with them, and errors of the databases are told
//! apart by them.

use sha2::{Digest, Sha256};

/// PostgreSQL cuts longer names.
const LONGEST_NAME: usize = 63;

/// The name of the index by which these fields are unique; errors are told apart by it.
pub(crate) fn unique_name(table: &str, fields: &[&str]) -> String {
    name("unique", table, fields)
}

/// The name of an index by which nothing is unique.
pub(crate) fn index_name(table: &str, fields: &[&str]) -> String {
    name("index", table, fields)
}

/// The name of the foreign key of a link; errors are told apart by it.
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
