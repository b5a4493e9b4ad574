//! A device, by its uuid and by its numbers.

use data::{DataError, Row, SystemPurpose};
use resources::Role;

use crate::cloud::Cloud;
use crate::credential::Identity;

/// A device, as used by endpoints that name it by its uuid.
#[derive(Debug, Clone, Copy)]
pub struct DeviceRef {
    pub id: i64,
    pub actor: i64,
}

impl DeviceRef {
    fn read(row: &Row) -> Result<Self, DataError> {
        Ok(DeviceRef {
            id: row.id(0)?,
            actor: row.id(1)?,
        })
    }

    /// Whether a credential is a key of this device.
    pub fn is_own_key(&self, identity: &Identity) -> bool {
        identity.is_key()
            && identity.role() == Role::DeviceKey
            && identity.actor() == Some(self.actor)
    }
}

impl Cloud {
    /// Returns the device with a uuid, if it (still) exists.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn device(&self, uuid: &str) -> Result<Option<DeviceRef>, DataError> {
        if !is_uuid(uuid) {
            return Ok(None);
        }
        let select = SystemPurpose::Lookup
            .sql("SELECT id, actor FROM device WHERE uuid = ?")
            .with(uuid);
        let row = self.database.row(&select).await?;
        row.as_ref().map(DeviceRef::read).transpose()
    }
}

/// Whether this can be the uuid of a device (docs/spec/cloud.md#rule-device-fields).
pub fn is_uuid(text: &str) -> bool {
    matches!(text.len(), 32 | 62)
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
