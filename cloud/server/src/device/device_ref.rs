//! A device by its numbers.

use data::{DataError, Row};
use resources::Role;

use crate::credential::Identity;

/// A device, as endpoints that name it by its uuid need it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceRef {
    pub(crate) id: i64,
    pub(crate) actor: i64,
}

impl DeviceRef {
    pub(super) fn read(row: &Row) -> Result<Self, DataError> {
        Ok(DeviceRef {
            id: row.id(0)?,
            actor: row.id(1)?,
        })
    }

    /// Whether a credential is a key of this very device.
    pub(crate) fn is_own_key(&self, identity: &Identity) -> bool {
        identity.is_key()
            && identity.role() == Role::DeviceKey
            && identity.actor() == Some(self.actor)
    }
}
