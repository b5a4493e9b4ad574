//! Names in the database: of the tables that no resource is behind, and of indexes and foreign keys. The tables are
//! made by them, and errors of the databases are told apart by them.

use sha2::{Digest, Sha256};

/// The generations that states of devices are made from.
pub(crate) const GENERATIONS: &str = "state_generation";
/// Files beside releases.
pub(crate) const FILES: &str = "release_asset_file";
/// The pieces of those files.
pub(crate) const FILE_PIECES: &str = "release_asset_piece";
/// Uploads of such files that are under way.
pub(crate) const UPLOADS: &str = "release_asset_upload";
/// The parts that such uploads have.
pub(crate) const UPLOAD_PARTS: &str = "release_asset_part";
/// Quotas that administrators gave to organizations.
pub(crate) const QUOTAS: &str = "organization_quota";
/// Images that the registry is to delete.
pub(crate) const IMAGE_GARBAGE: &str = "image_garbage";

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
