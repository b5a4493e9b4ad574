//! The persistent data of the device, in one SQLite file: its identity, its keys, its target
//! states, unfinished actions, the owners of images, the update locks that services took over the
//! API, and the data of plugins.
//!
//! [`Store::open`] is called once, by the binary; clones of the [`Store`] are passed to the
//! reconciler, the plugins and the API. Methods are short and block: async callers run writes on a
//! blocking thread. A write has reached the disk when its method returns (WAL with
//! `synchronous=FULL`).
//!
//! Observable state is not stored here: no container, no network, no progress. Values that belong
//! to other modules (target states, intents, the snapshot of local mode) are stored as JSON and not
//! interpreted.

#![warn(missing_docs)]

mod aside;
mod copied;
mod database;
mod database_files;
mod definitions;
mod error;
mod folder_lock;
mod identity;
mod images;
mod intents;
mod key_table;
mod keys;
mod migrations;
mod moments;
mod open;
mod plugin_data;
mod plugin_usage;
mod read_only;
mod remembered;
mod rows;
mod settings;
mod single_values;
mod store;
mod targets;
mod update_locks;

pub use database_files::FILE_NAME;
pub use definitions::Definition;
pub use error::{PluginDataError, StoreError};
pub use folder_lock::LOCK_NAME;
pub use images::ImageRecord;
pub use intents::Intent;
pub use key_table::KeyOwner;
pub use keys::read_global_key;
#[cfg(feature = "moments")]
pub use moments::{AFTER_WRITE, BEFORE_WRITE};
pub use open::OpenStore;
pub use plugin_data::{
    Condition, MAX_KEY, MAX_KEYS, MAX_TOTAL, MAX_VALUE, ValueChange, read_plugin_value,
};
pub use settings::LogPosition;
pub use store::Store;
pub use targets::TargetSource;
pub use update_locks::LockRecord;

#[cfg(test)]
mod tests;
