//! The database of the fleet cloud: SQLite or PostgreSQL, with the same results.
//!
//! The server opens a [`Database`] once and hands out clones. Reads go through it; a write is a [`Transaction`], whose
//! [`Effect`]s the server receives once it is committed. Tables, uniqueness and the actions on deletion of linked rows
//! are all derived from the `resources` crate. This crate does not deal with HTTP, passwords or tokens.
#![warn(missing_docs)]

pub mod audit;
mod caller;
pub mod catalogue;
mod connection;
mod database;
mod dialect;
mod effect;
mod error;
pub mod file;
pub mod generation;
mod image_garbage;
mod keyring;
mod letter_case;
mod names;
mod options;
mod owner;
mod pools;
pub mod query;
pub mod quota;
mod random;
mod record;
mod refusal;
mod right;
mod row;
mod rules;
mod schema;
pub mod sealed;
mod session;
pub mod setting;
mod sqlite;
mod statement;
mod system_organization;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transaction;
pub mod upload;
pub mod write;
mod writer;

pub use caller::SystemPurpose;
pub use database::Database;
pub use dialect::Dialect;
pub use effect::{DeviceGone, Effect};
pub use error::DataError;
pub use image_garbage::ImageGarbage;
pub use keyring::{Keyring, KeyringError, SecretLocation, UnreadableSecret, is_key_name};
pub use options::{Options, Pool, PoolOptions};
pub use right::RowRight;
pub use row::Row;
pub use rules::ROW_RULES;
pub use statement::{BuiltStatement, SeaQuery, Sql, Statement, SystemStatement};
pub use system_organization::SystemOrganization;
pub use transaction::Transaction;
