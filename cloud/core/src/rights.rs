//! Rights of a caller, checked outside the data API.

use data::RowRight;
use data::query::{Caller, Right};

use crate::answer::Refusal;
use crate::cloud::Cloud;
use crate::credential::Identity;
use crate::device::DeviceRef;

impl Cloud {
    /// Returns the right of a caller to do this with a row, if there is one.
    ///
    /// # Errors
    /// If the database fails; a missing right is not an error.
    pub async fn right(
        &self,
        caller: &Caller,
        resource: &str,
        id: i64,
        right: impl Into<Right>,
    ) -> Result<Option<RowRight>, Refusal> {
        let setting = self.setting(caller);
        Ok(self.database.right(&setting, resource, id, right).await?)
    }

    /// Returns the same for an existing device; the device's own key needs no statement for it.
    ///
    /// # Errors
    /// As for [`Cloud::right`].
    pub async fn right_on_device(
        &self,
        identity: &Identity,
        device: DeviceRef,
        right: impl Into<Right>,
    ) -> Result<Option<RowRight>, Refusal> {
        let right = right.into();
        let caller = &identity.caller;
        let own = if identity.is_key() {
            RowRight::from_device_key(caller, device.id, device.actor, right)
        } else {
            None
        };
        match own {
            Some(own) => Ok(Some(own)),
            None => self.right(caller, "device", device.id, right).await,
        }
    }
}
