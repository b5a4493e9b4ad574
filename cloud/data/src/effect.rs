//! What a transaction changed that somebody outside the database waits for. Replicas tell it each other as it
//! stands here.

use serde::{Deserialize, Serialize};

/// Told to whoever listens ([`crate::Database::listen`]) once a transaction is committed, and never before.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Effect {
    /// What these devices should run, or their variables, may have changed.
    DevicesChanged(Vec<i64>),
    /// The same, for every device of these fleets, and for those that a release of one of them operates or
    /// manages.
    FleetsChanged(Vec<i64>),
    /// These devices are no more.
    DevicesGone(Vec<DeviceGone>),
    /// What credentials of these actors may do has changed, or they are no more.
    ActorsChanged(Vec<i64>),
    /// The files of these images are no longer needed (locations in the registry).
    ImagesGone(Vec<String>),
}

/// A device that is no more.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceGone {
    /// Its number.
    pub id: i64,
    /// Its uuid.
    pub uuid: String,
}
