//! Changes in a transaction that matter outside the database. Replicas send them to each other in this form.

use serde::{Deserialize, Serialize};

/// An effect, passed to the listener ([`crate::Database::listen`]) only after the transaction is committed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Effect {
    /// The target state of these devices, or their variables, may have changed.
    DevicesChanged(Vec<i64>),
    /// The same for every device of these fleets, and for those that a release of one of them operates or manages.
    FleetsChanged(Vec<i64>),
    /// These devices were deleted.
    DevicesGone(Vec<DeviceGone>),
    /// The rights of these actors' credentials have changed, or they were deleted.
    ActorsChanged(Vec<i64>),
    /// The files of these images are no longer needed (locations in the registry).
    ImagesGone(Vec<String>),
}

/// A deleted device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceGone {
    /// Its number.
    pub id: i64,
    /// Its uuid.
    pub uuid: String,
}
